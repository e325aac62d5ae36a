# /// case
# title = "The Lagrange multiplier is minimised together with the design"
# category = "loss"
# kind = "multiplier-minimised-instead-of-maximised"
# kinds_also_ok = ["dual-descent", "wrong-sign-of-dual-update", "lagrange-multiplier-wrong-direction", "missing-maximize"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["dual", "multiplier", "maximize", "raw"]
# symptom = "the multiplier falls to zero and the volume limit is ignored"
# symptom_check = 'optimiser.state["volume"] > 1.3 * optimiser.limit'
# cause = "the dual optimizer descends on the Lagrangian, where the multiplier has to ascend."
# fix = "maximize=True for the dual optimizer"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ThicknessField(nn.Module):
    """Coordinate network that gives the thickness along a cantilever."""

    def __init__(self, frequencies=4, hidden=24, low=0.05, high=1.0):
        super().__init__()
        self.low, self.high = low, high
        self.register_buffer("bands", torch.pi * torch.arange(1, frequencies + 1))
        self.net = nn.Sequential(nn.Linear(2 * frequencies + 1, hidden), nn.Softplus(), nn.Linear(hidden, 1))

    def forward(self, x):
        phase = x[:, None] * self.bands
        features = torch.cat([x[:, None], phase.sin(), phase.cos()], 1)
        return self.low + (self.high - self.low) * torch.sigmoid(self.net(features).squeeze(1))


class Multiplier(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw = nn.Parameter(torch.tensor(0.0))

    def forward(self, violation):
        return F.softplus(self.raw) * violation  #! also


class DesignOptimiser:
    def __init__(self, elements=64, limit=0.4):
        self.x = (torch.arange(elements) + 0.5) / elements
        self.moment = 1.0 - self.x
        self.limit = limit
        self.field, self.multiplier = ThicknessField(), Multiplier()
        self.primal = torch.optim.Adam(self.field.parameters(), lr=1e-2)
        self.dual = torch.optim.Adam(self.multiplier.parameters(), lr=3e-2)  #- here
#+         self.dual = torch.optim.Adam(self.multiplier.parameters(), lr=3e-2, maximize=True)
        self.state = {}

    def compliance(self, thickness):
        return (self.moment.square() / thickness).mean()

    def iterate(self):
        thickness = self.field(self.x)
        compliance, volume = self.compliance(thickness), thickness.mean()
        lagrangian = compliance + self.multiplier(volume - self.limit)  #! also
        for optimizer in (self.primal, self.dual):
            optimizer.zero_grad()
        lagrangian.backward()
        self.primal.step()
        self.dual.step()  #! also
        self.state = {
            "compliance": compliance.item(),
            "volume": volume.item(),
            "multiplier": F.softplus(self.multiplier.raw).item(),
        }
        return self.state


def run(optimiser, iterations, every=100):
    for k in range(iterations):
        state = optimiser.iterate()
        if k % every == 0:
            print(k, " ".join(f"{name} {value:.4f}" for name, value in state.items()))
    return state


torch.manual_seed(40)
optimiser = DesignOptimiser()
final = run(optimiser, iterations=300)
print("limit", optimiser.limit, "final", {name: round(value, 4) for name, value in final.items()})
