import torch
import torch.nn as nn
import torch.nn.functional as F


class TextCNN(nn.Module):
    def __init__(self, vocab=100, dim=24, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv1d(dim, 16, k, padding="same") for k in (3, 5)])
        self.fc = nn.Linear(32, classes)

    def classify(self, vectors):
        feats = vectors.transpose(1, 2)
        pooled = [torch.tanh(conv(feats)).mean(-1) for conv in self.convs]
        return self.fc(torch.cat(pooled, -1))


def gradient_penalty(loss, vectors):
    sensitivity, = torch.autograd.grad(loss, vectors, create_graph=True)
    return sensitivity.square().sum((1, 2)).mean()


def make_batch(size=32, length=10):
    y = torch.randint(0, 3, (size,))
    x = torch.randint(0, 100, (size, length))
    x[:, ::3] = y[:, None] * 30 + torch.randint(0, 30, x[:, ::3].shape)
    return x, y


torch.manual_seed(2)
net = TextCNN()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
lam = 2.0

for it in range(60):
    x, y = make_batch()
    vectors = net.embed(x)
    ce = F.cross_entropy(net.classify(vectors), y)
    gp = gradient_penalty(ce * len(x), vectors)
    loss = ce + lam * gp
    opt.zero_grad()
    loss.backward()
    opt.step()
    if it % 15 == 14:
        print(it, "ce", round(ce.item(), 4), "gp", round(gp.item(), 5))
