"""BP840 entropy-punished."""

PROGRAMS = {
    "a trunk with two heads": """
import torch
from torch import nn
torch.manual_seed(10)
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
    def forward(self, s):
        h = torch.tanh(self.trunk(s))
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
ag = Agent(); opt = torch.optim.Adam(ag.parameters(), 1e-3)
for _ in range(6):
    s = torch.randn(24, 4); dist, v = ag(s); a = dist.sample(); ret = torch.randn(24)
    adv = (ret - v).detach()
    pg = -(dist.log_prob(a) * adv).mean()
    vl = (ret - v).pow(2).mean()
    loss = pg + 0.5 * vl + 0.01 * dist.entropy().mean()  # <- BP840
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "right: a trunk with two heads": """
import torch
from torch import nn
torch.manual_seed(10)
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.pi, self.v = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
    def forward(self, s):
        h = torch.tanh(self.trunk(s))
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
ag = Agent(); opt = torch.optim.Adam(ag.parameters(), 1e-3)
for _ in range(6):
    s = torch.randn(24, 4); dist, v = ag(s); a = dist.sample(); ret = torch.randn(24)
    adv = (ret - v).detach()
    pg = -(dist.log_prob(a) * adv).mean()
    vl = (ret - v).pow(2).mean()
    loss = pg + 0.5 * vl - 0.01 * dist.entropy().mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
}
