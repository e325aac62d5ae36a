import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = nn.Embedding(vocab, dim, sparse=True)
        self.context = nn.Embedding(vocab, dim, sparse=True)
        bound = 0.5 / dim
        self.center.weight.data.uniform_(-bound, bound)
        self.context.weight.data.uniform_(0, 0)

    def forward(self, c, pos, neg):
        v = self.center(c)
        pos_score = (v * self.context(pos)).sum(1)
        neg_score = torch.bmm(self.context(neg), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos_score) + F.logsigmoid(-neg_score).sum(1)).mean()


vocab = 25
text = torch.randint(0, vocab, (300,))
freq = torch.bincount(text, minlength=vocab).float().pow(0.75)
model = SkipGram(vocab, 8)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
total_steps, step = 16, 0
for epoch in range(2):
    for k in range(8):
        pos = torch.randint(2, 298, (32,))
        c, ctx = text[pos], text[pos + torch.tensor([-2, -1, 1, 2])[torch.randint(0, 4, (32,))]]
        neg = torch.multinomial(freq, 32 * 5, replacement=True).view(32, 5)
        for g in opt.param_groups:
            g["lr"] = 0.5 * (1 - step / total_steps)
        opt.zero_grad()
        loss = model(c, ctx, neg)
        loss.backward()
        opt.step()
        step += 1
    print(epoch, loss.item())
