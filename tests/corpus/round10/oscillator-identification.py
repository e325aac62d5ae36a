# /// case
# title = "The system matrix is rebuilt with torch.tensor from the parameters"
# category = "graph-break"
# kind = "graph-cut-by-torch-tensor"
# kinds_also_ok = ["tensor-rebuilt-from-values", "parameter-copied-out-of-graph", "graph-break-new-tensor"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["stiffness", "damping", "system"]
# symptom = "the stiffness and the damping stay where they began; only the initial state is fitted"
# symptom_check = "model.stiffness.grad is None and model.damping.grad is None"
# cause = "torch.tensor copies the numbers of its arguments into a new tensor that has no history."
# fix = "assemble the matrix with torch.stack"
# ///
import math

import torch
from torch import nn


class DampedOscillator(nn.Module):
    def __init__(self, stiffness, damping, dt):
        super().__init__()
        self.stiffness = nn.Parameter(torch.tensor(stiffness))  #! also
        self.damping = nn.Parameter(torch.tensor(damping))  #! also
        self.start = nn.Parameter(torch.tensor([0.5, 0.0]))
        self.dt = dt

    def system(self):
        return torch.tensor([[0.0, 1.0], [-self.stiffness, -self.damping]])  #- here
#+         return torch.stack([torch.tensor([0.0, 1.0]), torch.stack([-self.stiffness, -self.damping])])

    def forward(self, steps):
        transition = torch.matrix_exp(self.system() * self.dt)  #! also
        state, path = self.start, []
        for _ in range(steps):
            path.append(state[0])
            state = transition @ state
        return torch.stack(path)


def measured(steps, dt, k=2.2, c=0.3, noise=0.01):
    omega = math.sqrt(k - c * c / 4)
    t = dt * torch.arange(steps)
    clean = torch.exp(-c * t / 2) * torch.cos(omega * t)
    return clean + noise * torch.randn(steps)


def identify(model, displacement, iterations):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    history = []
    for it in range(iterations):
        optimizer.zero_grad()
        misfit = (model(len(displacement)) - displacement).square().mean()
        misfit.backward()
        optimizer.step()
        history.append(misfit.item())
    return history


torch.manual_seed(11)
displacement = measured(32, 0.15)
model = DampedOscillator(stiffness=1.2, damping=0.1, dt=0.15)
history = identify(model, displacement, 100)
print(f"misfit {history[0]:.4f} -> {history[-1]:.4f}")
print("k", model.stiffness.item(), "c", model.damping.item(), "x0", model.start.tolist())
