# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["scales"]
# ///
#-
import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self, levels, d):
        super().__init__()
        self.proj = nn.ModuleList(nn.Linear(d, d) for _ in range(levels))
        self.scales = [nn.Parameter(torch.ones(d)) for _ in range(levels)]  #- here
#+         self.scales = nn.ParameterList(nn.Parameter(torch.ones(d)) for _ in range(levels))

    def forward(self, x):
        return sum(s * torch.tanh(p(x)) for s, p in zip(self.scales, self.proj))


torch.manual_seed(0)
net = Pyramid(3, 5)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)  #! also
for _ in range(4):
    x = torch.randn(8, 5)
    loss = (net(x) - x.flip(1)).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
