# /// case
# title = "Per-term gradient norms free the graph that the total loss still needs"
# category = "backward-flags"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["backward", "terms", "term_norms", "total"]
# difficulty = "medium"
# symptom = "RuntimeError: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "both terms share one forward pass; backward() of the first term frees its buffers"
# fix = "retain the graph while the term norms are measured"
# evidence = [{ url = "https://github.com/facebookresearch/MetaBalance/issues/2" }, { url = "https://github.com/PredictiveIntelligenceLab/GradientPathologiesPINNs" }]
# ///
"""PINN for a damped oscillator with loss weights balanced by gradient norms."""
import torch
from torch import nn

DAMPING, STIFFNESS = 0.4, 4.0


class Oscillator(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, t):
        return self.net(t)


def derivatives(u, t):
    ones = torch.ones_like(u)
    du, = torch.autograd.grad(u, t, ones, create_graph=True)
    ddu, = torch.autograd.grad(du, t, ones, create_graph=True)
    return du, ddu


def compute_terms(model, grid):
    t = grid.clone().requires_grad_(True)
    u = model(t)  #! also
    du, ddu = derivatives(u, t)
    return {
        "ode": (ddu + DAMPING * du + STIFFNESS * u).pow(2).mean(),
        "start": (u[0] - 1.0).pow(2).sum() + du[0].pow(2).sum(),
    }


def term_norms(model, terms):
    norms = {}
    for name, term in terms.items():
        model.zero_grad()
        term.backward()  #- here
#+         term.backward(retain_graph=True)
        norms[name] = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]).norm().item()
    return norms


torch.manual_seed(0)
model = Oscillator()
opt = torch.optim.Adam(model.parameters(), lr=4e-3)
grid = torch.linspace(0, 3, 60).unsqueeze(1)
weight = 1.0

for it in range(30):
    terms = compute_terms(model, grid)
    if it % 10 == 0:
        norms = term_norms(model, terms)  #! also
        weight = 0.5 * weight + 0.5 * norms["ode"] / (norms["start"] + 1e-8)
    total = terms["ode"] + weight * terms["start"]
    opt.zero_grad()
    total.backward()  #! also
    opt.step()
print(f"weight {weight:.2f} loss {total.item():.4f}")
