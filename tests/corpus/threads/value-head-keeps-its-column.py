# /// case
# title = "Critic output (N, 1) against returns (N,) through a helper"
# category = "helper"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["mse_loss", "values"]
# symptom = "the loss is over N x N pairs"
# symptom_check = "values.shape != returns.shape"
# cause = "the value head keeps a column"
# fix = "squeeze it"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/16045", title = "Bug: fail to throw error when computing loss between tensors with shapes [n, 1] and [n]" },
#     { url = "https://github.com/sunwuzhou03/reinforcement-learning-lab/issues/1", title = "MSE warning" },
# ]
# ///
import torch
from torch import nn


def discounted(rewards, gamma=0.98):
    out, run = [], 0.0
    for r in reversed(rewards):
        run = r + gamma * run
        out.insert(0, run)
    return torch.tensor(out)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, s):
        return self.net(s)  #- also
#+         return self.net(s).squeeze(-1)


torch.manual_seed(4)
critic = Critic()
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for episode in range(5):
    states = torch.randn(20, 3)
    returns = discounted([float(i % 3 == 0) for i in range(20)])
    values = critic(states)
    loss = nn.functional.mse_loss(values, returns)  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
