"""BP510 half-gradient-underflow."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a policy cast by to()": SHAPES
    + """
policy = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
policy.to(torch.float16)  # <- BP510
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
for _ in range(5):
    state = torch.randn(16, 8).half()
    logp = policy(state).float().log_softmax(1)
    action = torch.randint(0, 4, (16, 1))
    gain = 1e-7 * torch.randn(16, 1)
    loss = -(logp.gather(1, action) * gain).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "parameters made in float16": SHAPES
    + """
class Regressor:
    def __init__(self):
        self.net = nn.Linear(16, 1, dtype=torch.float16)  # <- BP510
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def update(self, x, y):
        self.opt.zero_grad()
        loss = ((self.net(x) - y) ** 2 * 1e-4).mean() * 1e-3
        loss.backward()
        self.opt.step()
        return loss.item()

model = Regressor()
for _ in range(5):
    x = torch.randn(16, 16).half()
    model.update(x, x.mean(1, keepdim=True))
""",
}
