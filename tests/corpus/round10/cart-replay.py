# /// case
# title = "The environment changes its state in place, and the buffer holds that one tensor many times"
# category = "data"
# kind = "aliased-observations"
# kinds_also_ok = ["buffer-stores-references", "in-place-environment-state", "same-tensor-stored-many-times"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["state", "step", "buffer", "clone"]
# symptom = "the model's loss falls to zero although it predicts that nothing ever moves"
# symptom_check = "bool((next_obs_all == obs_all).all())"
# cause = "obs and next_obs of each transition are the same tensor, which holds the episode's last state."
# fix = "self.state = self.state + ..., a new tensor for each step"
# ///
import torch
from torch import nn


class Cart:
    def __init__(self, dt=0.05):
        self.dt = dt

    def reset(self):
        self.state = (torch.rand(4) - 0.5) * 0.6
        return self.state  #! also

    def step(self, force):
        _, x_dot, theta, theta_dot = self.state.unbind()
        push = (force + 0.05 * theta_dot.square() * theta.sin()) / 1.1
        theta_acc = (9.8 * theta.sin() - theta.cos() * push) / (0.5 * (4 / 3 - 0.1 * theta.cos().square() / 1.1))
        x_acc = push - 0.05 * theta_acc * theta.cos() / 1.1
        self.state += self.dt * torch.stack([x_dot, x_acc, theta_dot, theta_acc])  #- here
#+         self.state = self.state + self.dt * torch.stack([x_dot, x_acc, theta_dot, theta_acc])
        return self.state


def collect(env, episodes, length):
    buffer = []
    for _ in range(episodes):
        obs = env.reset()
        for _ in range(length):
            action = torch.rand(1) * 4 - 2
            next_obs = env.step(action.squeeze())
            buffer.append((obs, action, next_obs))  #! also
            obs = next_obs  #! also
    return [torch.stack(column) for column in zip(*buffer)]


class DeltaModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, width), nn.Tanh(), nn.Linear(width, 4))

    def forward(self, obs, action):
        return obs + self.net(torch.cat([obs, action], dim=-1))


torch.manual_seed(33)
obs_all, act_all, next_obs_all = collect(Cart(), episodes=60, length=12)
model = DeltaModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scale = (next_obs_all - obs_all).std(0).clamp_min(1e-2)
losses = []
for step in range(200):
    rows = torch.randint(len(obs_all), (64,))
    error = (model(obs_all[rows], act_all[rows]) - next_obs_all[rows]) / scale
    loss = error.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", losses[0], losses[-1])
print("force response", (model(obs_all[:1], torch.ones(1, 1)) - model(obs_all[:1], -torch.ones(1, 1))).tolist())
