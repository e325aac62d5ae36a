# /// case
# title = "The second optimizer is given the first network's parameters"
# category = "optimizer"
# kind = "wrong-parameters-in-optimizer"
# kinds_also_ok = ["copy-paste-optimizer", "module-missing-from-optimizer", "optimizer-of-other-network"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["reward_optim", "dynamics", "reward"]
# symptom = "the reward model's loss does not move while the dynamics model learns"
# symptom_check = "log[-1]['reward'] > 0.99 * log[0]['reward'] and log[-1]['dynamics'] < 0.2 * log[0]['dynamics']"
# cause = "No optimizer holds the reward model."
# fix = "Adam(self.reward.parameters())"
# ///
import torch
from torch import nn


def head(n_in, n_out, width=40):
    layers = [nn.Linear(n_in, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, n_out)]
    return nn.Sequential(*layers)


class EnvironmentModel:
    def __init__(self, obs_dim, act_dim, lr=4e-3):
        self.dynamics = head(obs_dim + act_dim, obs_dim)
        self.reward = head(obs_dim + act_dim, 1)
        self.dynamics_optim = torch.optim.Adam(self.dynamics.parameters(), lr=lr)  #! also
        self.reward_optim = torch.optim.Adam(self.dynamics.parameters(), lr=lr)  #- here
#+         self.reward_optim = torch.optim.Adam(self.reward.parameters(), lr=lr)

    def losses(self, obs, act, rew, nxt):
        x = torch.cat((obs, act), 1)
        change = self.dynamics(x)
        return (obs + change - nxt).square().mean(), (self.reward(x).flatten() - rew).square().mean()

    def update(self, batch):
        dynamics_loss, reward_loss = self.losses(*batch)
        self.dynamics_optim.zero_grad()
        dynamics_loss.backward()
        self.dynamics_optim.step()
        self.reward_optim.zero_grad()  #! also
        reward_loss.backward()
        self.reward_optim.step()  #! also

    @torch.no_grad()
    def evaluate(self, data):
        dynamics_loss, reward_loss = self.losses(*data)
        return {"dynamics": dynamics_loss.item(), "reward": reward_loss.item()}


def drone(n, g=torch.Generator().manual_seed(77)):
    obs = torch.randn(n, 4, generator=g)
    act = torch.rand(n, 2, generator=g) * 2 - 1
    height, drift, climb, slip = obs.unbind(1)
    climb2 = climb + 0.2 * (act.sum(1) - 0.3 * climb)
    slip2 = slip + 0.2 * (act[:, 0] - act[:, 1] - 0.3 * slip)
    nxt = torch.stack((height + 0.2 * climb2, drift + 0.2 * slip2, climb2, slip2), 1)
    return obs, act, 1 - 0.5 * nxt[:, :2].square().sum(1), nxt


torch.manual_seed(77)
model = EnvironmentModel(4, 2)
train, held_out = drone(1500), drone(200)
log = [model.evaluate(held_out)]
for epoch in range(12):
    for rows in torch.randperm(1500).split(100):
        model.update([t[rows] for t in train])
    log.append(model.evaluate(held_out))
print(log[0], log[-1], sep="\n")
