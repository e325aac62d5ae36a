# /// case
# title = "Every weight of the hidden layer starts with the same number"
# category = "scale"
# kind = "symmetric-initialisation"
# kinds_also_ok = ["constant-initialisation", "symmetry-not-broken"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["init", "constant_", "weight"]
# symptom = "all hidden units stay the same"
# symptom_check = "bool(torch.allclose(field.inner.weight, field.inner.weight[:1].expand_as(field.inner.weight), atol=1e-6))"
# cause = "Units with equal weights get equal gradients, so that the layer acts as a single unit."
# fix = "a random initialisation"
# ///
import torch
import torch.nn as nn


def reset(module, gain=0.5):
    if isinstance(module, nn.Linear):
        nn.init.constant_(module.weight, gain / module.in_features)  #- here
#+         nn.init.xavier_uniform_(module.weight, gain)
        nn.init.zeros_(module.bias)


class Field(nn.Module):
    """Right-hand side of a learned differential equation."""

    def __init__(self, size=2, width=16):
        super().__init__()
        self.inner = nn.Linear(size, width)
        self.outer = nn.Linear(width, size)
        self.apply(reset)  #! also

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
