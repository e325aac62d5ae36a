"""BP846 centred-over-batch."""

PROGRAMS = {
    "in another shape": """
import torch
from torch import nn

class Dueling(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.body, self.a, self.v = nn.Linear(obs, 16), nn.Linear(16, act), nn.Linear(16, 1)

    def forward(self, s):
        h = torch.relu(self.body(s))
        a, v = self.a(h), self.v(h)
        return v + (a - a.mean(0, keepdim=True))  # <- BP846

net = Dueling(4, 3)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(4):
    s, wanted = torch.randn(16, 4), torch.randn(16)
    loss = (net(s).gather(1, torch.randint(0, 3, (16, 1))).squeeze(1) - wanted).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: what looks like it": """
import torch
from torch import nn

net, scale = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*net.parameters(), *scale.parameters()], lr=1e-3)
for _ in range(4):
    s = torch.randn(16, 4)
    h = net(s)
    h = (h - h.mean(0)) / (h.std(0) + 1e-5) * scale(s)
    loss = (h - s[:, :3]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "advantages have a name before they are averaged": """
import torch
from torch import nn
import torch.nn.functional as F

actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
for _ in range(4):
    states, rewards, taken = torch.randn(8, 4), torch.randn(8), torch.randint(0, 3, (8,))
    values = critic(states).squeeze(1)
    log_probs = F.log_softmax(actor(states), dim=1)
    advantages = rewards - values.detach()
    middle = advantages.mean()  # <- BP846
    gains = middle * log_probs[range(8), taken]
    loss = F.mse_loss(values, rewards) - gains.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "right: the mean of named advantages is taken off": """
import torch
from torch import nn
import torch.nn.functional as F

actor, critic = nn.Linear(4, 3), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)
for _ in range(4):
    states, rewards, taken = torch.randn(8, 4), torch.randn(8), torch.randint(0, 3, (8,))
    values = critic(states).squeeze(1)
    log_probs = F.log_softmax(actor(states), dim=1)
    advantages = rewards - values.detach()
    middle = advantages.mean()
    gains = (advantages - middle) * log_probs[range(8), taken]
    loss = F.mse_loss(values, rewards) - gains.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
