import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in range(experts))

    def forward(self, x):
        probs = self.router(x).softmax(dim=-1)
        gate, index = probs.max(dim=-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (index == e).nonzero().squeeze(1)
            if len(rows):
                out[rows] = gate[rows, None] * expert(x[rows])
        share = F.one_hot(index, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (share * probs.mean(0)).sum()
        return x + out, balance


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.moe, self.out = nn.Linear(6, 12), Switch(12, 4), nn.Linear(12, 3)

    def forward(self, x):
        h, aux = self.moe(torch.tanh(self.inp(x)))
        return self.out(h), aux


torch.manual_seed(125)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.randn(120, 6)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(120).split(40):
        logits, aux = model(x[rows])
        loss = F.cross_entropy(logits, y[rows]) + 0.01 * aux
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), aux.item())
