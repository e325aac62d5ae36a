"""Critics that score what others made: BP213 where their own gradient is added to, and silence of BP701."""

_NETS = """
import torch
from torch import nn

actor = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
critic = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
"""

_BOTH = (
    _NETS
    + """first = torch.optim.Adam(actor.parameters(), lr=1e-3)
second = torch.optim.Adam(critic.parameters(), lr=1e-3)
"""
)

PROGRAMS = {
    "an actor's loss adds to the gradient of the critic's own": _BOTH
    + """for state in torch.randn(4, 8, 4):
    fit = (critic(torch.cat([state, torch.rand(8, 2)], 1)) - torch.randn(8, 1)).pow(2).mean()
    score = -critic(torch.cat([state, actor(state)], 1)).mean()
    first.zero_grad()
    second.zero_grad()
    fit.backward()
    score.backward()  # <- BP213
    first.step()
    second.step()
""",
    "what the actor's loss leaves in the critic is cleared": _BOTH
    + """for state in torch.randn(4, 8, 4):
    score = -critic(torch.cat([state, actor(state)], 1)).mean()
    first.zero_grad()
    score.backward()
    first.step()
    fit = (critic(torch.cat([state, torch.rand(8, 2)], 1)) - torch.randn(8, 1)).pow(2).mean()
    second.zero_grad()
    fit.backward()
    second.step()
""",
    "both optimizers step on both losses of one trunk": """
import torch
from torch import nn

trunk, head = nn.Linear(4, 8), nn.Linear(8, 1)
first = torch.optim.Adam(trunk.parameters(), lr=1e-3)
second = torch.optim.Adam(head.parameters(), lr=1e-3)
for x in torch.randn(4, 8, 4):
    first.zero_grad()
    second.zero_grad()
    h = torch.tanh(trunk(x))
    (head(h) - x[:, :1]).pow(2).mean().backward(retain_graph=True)
    head(h).abs().mean().mul(0.01).backward()
    first.step()
    second.step()
""",
    "a critic that is given, in no optimizer": _NETS
    + """optimizer = torch.optim.Adam(actor.parameters(), lr=1e-3)
for state in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    (-critic(torch.cat([state, actor(state)], 1)).mean()).backward()
    optimizer.step()
""",
    "a head whose output is compared with data is in no optimizer": """
import torch
from torch import nn

body, head = nn.Linear(4, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam(body.parameters(), lr=1e-3)  # <- BP701
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    (head(body(x).tanh()) - x[:, :1]).pow(2).mean().backward()
    optimizer.step()
""",
    "a criterion that learns is in no optimizer": """
import torch
from torch import nn

class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_scale = nn.Parameter(torch.zeros(()))

    def forward(self, a, b):
        return ((a - b).pow(2) * self.log_scale.exp() - self.log_scale).mean()

body, criterion = nn.Linear(4, 8), Scaled()
optimizer = torch.optim.Adam(body.parameters(), lr=1e-3)  # <- BP701
for x in torch.randn(4, 8, 4):
    optimizer.zero_grad()
    criterion(body(x), x.repeat(1, 2)).backward()
    optimizer.step()
""",
    "a state is carried on without its graph, behind the step": """
import torch
from torch import nn

cell, head = nn.GRUCell(3, 5), nn.Linear(5, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
state = torch.zeros(2, 5)
for x in torch.randn(4, 2, 3):
    loss = head(state).pow(2).mean()
    state = cell(x, state)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
""",
}
