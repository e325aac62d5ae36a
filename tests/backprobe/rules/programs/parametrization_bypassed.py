"""BP760 parametrization-bypassed."""

PROGRAMS = {
    "by a function of init, in a model of its own": """
import torch
from torch import nn
from torch.nn.utils.parametrizations import orthogonal

class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = orthogonal(nn.Linear(4, 4))
        self.last = nn.Linear(4, 1)
        for layer in (self.first, self.last):
            nn.init.zeros_(layer.bias)
        nn.init.xavier_uniform_(self.first.weight)  # <- BP760

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))

critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    critic(x).pow(2).mean().backward()
    optimizer.step()
""",
    "another layer beside it": """
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

first, last = spectral_norm(nn.Linear(4, 4)), nn.Linear(4, 1)
nn.init.xavier_uniform_(last.weight)
last.weight.data.mul_(0.1)
optimizer = torch.optim.SGD([*first.parameters(), *last.parameters()], lr=0.1)
for x in torch.randn(3, 8, 4):
    optimizer.zero_grad()
    last(torch.relu(first(x))).pow(2).mean().backward()
    optimizer.step()
""",
}
