import torch
from torch import nn

torch.manual_seed(15)


def init(module):
    if isinstance(module, nn.Linear):
        nn.init.orthogonal_(module.weight, gain=1.4)
        nn.init.zeros_(module.bias)


net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2)).apply(init)
nn.init.orthogonal_(net[2].weight, gain=0.01)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(8):
    opt.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,))).backward()
    opt.step()
