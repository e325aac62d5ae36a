import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


class LayerDropEncoder(nn.Module):
    def __init__(self, d=8, n=4, p=0.4):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 2, 16, dropout=0.0, batch_first=True) for _ in range(n))
        self.p = p
        self.cls = nn.Linear(d, 2)

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.p:
                continue
            x = layer(x)
        return self.cls(x[:, 0])


net = LayerDropEncoder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(24, 5, 8)
y = (x[:, 0, 0] > 0).long()
for step in range(6):
    net.train()
    i = torch.randperm(24)[:12]
    loss = nn.functional.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    print(loss.item(), (net(x).argmax(1) == y).float().mean().item())
