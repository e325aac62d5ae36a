# /// case
# category = "training"
# kind = "missing-detach"
# severity = "warning"
# names = ["target", "value", "critic", "no_grad"]
# ///
#-
from typing import NamedTuple

import torch
from torch import nn


class Transition(NamedTuple):
    state: torch.Tensor
    reward: torch.Tensor
    following: torch.Tensor


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, state):
        return self.net(state).squeeze(-1)


def td_error(critic, batch, gamma=0.95):
    target = batch.reward + gamma * critic(batch.following)  #- here
#+     target = batch.reward + gamma * critic(batch.following).detach()
    return (critic(batch.state) - target).pow(2).mean()  #! also


torch.manual_seed(0)
critic = Critic()
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(4):
    batch = Transition(torch.randn(16, 3), torch.randn(16), torch.randn(16, 3))
    opt.zero_grad()
    td_error(critic, batch).backward()
    opt.step()
