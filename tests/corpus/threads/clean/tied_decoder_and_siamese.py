import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(39)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 4)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        h = torch.relu(self.enc(x))
        return h, F.linear(h, self.enc.weight.t(), self.bias)


net = Tied()
twin = net
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(6):
    x = torch.randn(16, 8)
    (h1, r1), (h2, _) = net(x), twin(x + 0.1 * torch.randn_like(x))
    opt.zero_grad()
    ((r1 - x).pow(2).mean() + (h1 - h2).pow(2).mean()).backward()
    opt.step()
