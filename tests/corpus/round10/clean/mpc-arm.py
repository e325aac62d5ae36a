from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def frozen(module):
    before = [(p, p.requires_grad) for p in module.parameters()]
    was_training = module.training
    module.requires_grad_(False).eval()
    try:
        yield module
    finally:
        for p, flag in before:
            p.requires_grad_(flag)
        module.train(was_training)


class ArmModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Dropout(0.02), nn.Linear(width, 4))

    def forward(self, state, torque):
        angle, speed = state[..., :2], state[..., 2:]
        return state + self.net(torch.cat([angle.sin(), angle.cos(), speed, torque], -1))


def arm(state, torque, dt=0.1):
    angle, speed = state[..., :2], state[..., 2:]
    speed = speed + dt * (4 * torque - 0.5 * speed - angle.sin())
    return torch.cat([angle + dt * speed, speed], -1)


def fit(model, optimizer, states, torques, following, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(states)).split(100):
            loss = (model(states[rows], torques[rows]) - following[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def plan(model, state, goal, horizon=8, iterations=15):
    torques = torch.zeros(horizon, 2, requires_grad=True)
    optimizer = torch.optim.Adam([torques], lr=0.15)
    with frozen(model):
        for _ in range(iterations):
            s, cost = state, 0.0
            for u in torques:
                s = model(s, u.tanh())
                cost = cost + (s[:2] - goal).square().sum() + 0.01 * u.square().sum()
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()
    return torques.detach()[0].tanh(), cost.item()


torch.manual_seed(38)
model = ArmModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
states, torques = torch.randn(1000, 4), torch.rand(1000, 2) * 2 - 1
first = fit(model, optimizer, states, torques, arm(states, torques), epochs=1)
last = fit(model, optimizer, states, torques, arm(states, torques), epochs=12)
state, goal, costs = torch.zeros(4), torch.tensor([0.6, -0.4]), []
for _ in range(12):
    torque, cost = plan(model, state, goal)
    state = arm(state, torque)
    costs.append(cost)
last = fit(model, optimizer, states, torques, arm(states, torques), epochs=1)
print("model", first, "->", last, "plan", costs[0], "->", costs[-1])
