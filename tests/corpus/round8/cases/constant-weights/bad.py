import torch
import torch.nn as nn


def reset(module, gain=0.5):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, gain / module.in_features)
        nn.init.zeros_(module.bias)


class Field(nn.Module):
    """Right-hand side of a learned differential equation."""

    def __init__(self, size=2, width=16):
        super().__init__()
        self.inner = nn.Linear(size, width)
        self.outer = nn.Linear(width, size)
        self.apply(reset)

    def forward(self, state):
        return self.outer(torch.tanh(self.inner(state)))


def runge_kutta(f, state, dt):
    k1 = f(state)
    k2 = f(state + dt / 2 * k1)
    k3 = f(state + dt / 2 * k2)
    k4 = f(state + dt * k3)
    return state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def integrate(f, state, steps, dt=0.1):
    path = [state]
    for _ in range(steps):
        path.append(runge_kutta(f, path[-1], dt))
    return torch.stack(path)


def spiral(state):
    turn = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    return state ** 3 @ turn


torch.manual_seed(36)
field = Field()
optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
with torch.no_grad():
    truth = integrate(spiral, torch.rand(20, 2) * 2 - 1, steps=8)
for iteration in range(20):
    rows = torch.randperm(20)[:10]
    path = integrate(field, truth[0, rows], steps=8)
    loss = (path - truth[:, rows]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if iteration % 5 == 0:
        print(iteration, loss.item())
