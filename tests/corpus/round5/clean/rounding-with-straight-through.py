import torch
from torch import nn

torch.manual_seed(1)


class Int4Linear(nn.Linear):
    def __init__(self, i, o):
        super().__init__(i, o)
        self.step = nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        w = (self.weight / self.step).clamp(-8, 7)
        w = (w + (w.round() - w).detach()) * self.step
        return nn.functional.linear(x, w, self.bias)


net = nn.Sequential(Int4Linear(6, 24), nn.ReLU(), Int4Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(20):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] * x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
