# /// case
# title = "Second chunk of the policy's output is clamped in place"
# category = "in-place"
# kind = "inplace-on-multi-view"
# severity = "error"
# names = ["log_stds", "clamp_", "chunk"]
# symptom = "RuntimeError: Output 1 of SplitBackward0 is a view and is being modified inplace"
# raises = "RuntimeError"
# raises_message = "is a view and is being modified inplace"
# cause = "chunk() returns several views of one tensor"
# fix = "clamp out of place"
# evidence = [
#     { url = "https://github.com/toshikwa/gail-airl-ppo.pytorch/issues/13", title = "Questions about in-place operations" },
# ]
# ///
import math

import torch
from torch import nn


def build_mlp(d_in, d_out, hidden=(32,), act=nn.ReLU):
    layers = []
    for units in hidden:
        layers += [nn.Linear(d_in, units), act()]
        d_in = units
    return nn.Sequential(*layers, nn.Linear(d_in, d_out))


def reparameterize(means, log_stds):
    noises = torch.randn_like(means)
    us = means + noises * log_stds.exp()
    actions = torch.tanh(us)
    gaussian = (-0.5 * noises.pow(2) - log_stds).sum(-1, keepdim=True) - 0.5 * math.log(2 * math.pi) * means.shape[-1]
    return actions, gaussian - torch.log(1 - actions.pow(2) + 1e-6).sum(-1, keepdim=True)


class StateDependentPolicy(nn.Module):
    def __init__(self, state_shape, action_shape):
        super().__init__()
        self.net = build_mlp(state_shape[0], 2 * action_shape[0])

    def forward(self, states):
        return torch.tanh(self.net(states).chunk(2, dim=-1)[0])

    def sample(self, states):
        means, log_stds = self.net(states).chunk(2, dim=-1)  #! also
        return reparameterize(means, log_stds.clamp_(-20, 2))  #- here
#+         return reparameterize(means, log_stds.clamp(-20, 2))


class SACExpert:
    def __init__(self, state_shape=(4,), action_shape=(2,)):
        self.actor = StateDependentPolicy(state_shape, action_shape)
        self.critic = build_mlp(state_shape[0] + action_shape[0], 1)
        self.optim_actor = torch.optim.Adam(self.actor.parameters(), lr=3e-4)

    def update_actor(self, states, alpha=0.1):
        actions, log_pis = self.actor.sample(states)  #! also
        loss = (alpha * log_pis - self.critic(torch.cat([states, actions], 1))).mean()
        self.optim_actor.zero_grad()
        loss.backward()
        self.optim_actor.step()
        return loss.item()


torch.manual_seed(140)
expert = SACExpert()
print([expert.update_actor(torch.randn(16, 4)) for _ in range(3)])
