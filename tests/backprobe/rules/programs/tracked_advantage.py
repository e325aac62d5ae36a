"""BP811 tracked-advantage."""

HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-2)
"""

PROGRAMS = {
    "normalised, two actions at once": HEAD
    + """
for state in torch.randn(3, 8, 4):
    policy = torch.distributions.Normal(actor(state), 1.0)
    action, returns, value = policy.sample(), torch.randn(8), critic(state).squeeze(1)
    advantage = (returns - value - (returns - value).mean()) / ((returns - value).std() + 1e-8)
    loss = -(policy.log_prob(action).sum(1) * advantage).mean() + F.mse_loss(value, returns)  # <- BP811
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "an entropy of its own": HEAD
    + """
for state in torch.randn(3, 8, 4):
    policy = torch.distributions.Categorical(logits=actor(state))
    value = critic(state).squeeze(1)
    entropy = -(policy.log_prob(torch.zeros(8)) * policy.probs[:, 0]).mean()
    optimizer.zero_grad()
    (entropy + F.mse_loss(value, state.sum(1))).backward()
    optimizer.step()
""",
    "never stepped": HEAD
    + """
state = torch.randn(8, 4)
policy = torch.distributions.Categorical(logits=actor(state))
value = critic(state).squeeze(1)
(-(policy.log_prob(policy.sample()) * (1 - value)).mean() + F.mse_loss(value, state.sum(1))).backward()
""",
}
