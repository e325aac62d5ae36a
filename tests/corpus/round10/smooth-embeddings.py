# /// case
# title = "The penalty on the embeddings' gradient is made of a gradient without a graph"
# category = "higher-order"
# kind = "missing-create-graph"
# kinds_also_ok = ["gradient-penalty-without-gradient", "retain-graph-instead-of-create-graph", "constant-loss-term"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["create_graph", "sensitivity", "gp"]
# symptom = "the penalty is added to the loss and has no effect on the weights"
# symptom_check = "not gp.requires_grad"
# cause = "retain_graph only keeps the first graph; only create_graph records the gradient's own."
# fix = "create_graph=True"
# ///
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
    sensitivity, = torch.autograd.grad(loss, vectors, retain_graph=True)  #- here
#+     sensitivity, = torch.autograd.grad(loss, vectors, create_graph=True)
    return sensitivity.square().sum((1, 2)).mean()  #! also


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
    gp = gradient_penalty(ce * len(x), vectors)  #! also
    loss = ce + lam * gp  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    if it % 15 == 14:
        print(it, "ce", round(ce.item(), 4), "gp", round(gp.item(), 5))
