# /// case
# title = "The fixed point is solved for without a graph, and returned as it is"
# category = "graph-break"
# kind = "fixed-point-without-graph"
# kinds_also_ok = ["no-grad-around-forward", "missing-reattachment", "graph-break"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["settle", "no_grad", "cell"]
# symptom = "the cell's parameters have no gradients; only the readout is trained"
# symptom_check = "all(p.grad is None for p in model.cell.parameters())"
# cause = "settle iterates under no_grad and returns the result, so that nothing leads from the output to the cell."
# fix = "one application of the cell outside of no_grad: return self.cell(z, x)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Cell(nn.Module):
    def __init__(self, width, inputs):
        super().__init__()
        self.recurrent = nn.Linear(width, width, bias=False)
        self.drive = nn.Linear(inputs, width)
        nn.init.orthogonal_(self.recurrent.weight, gain=0.6)

    def forward(self, z, x):
        return torch.tanh(self.recurrent(z) + self.drive(x))


class Equilibrium(nn.Module):
    def __init__(self, inputs, width, outputs, tol=1e-5, limit=60):
        super().__init__()
        self.cell = Cell(width, inputs)
        self.readout = nn.Linear(width, outputs)
        self.tol, self.limit = tol, limit

    def settle(self, x):
        z = x.new_zeros(len(x), self.readout.in_features)
        with torch.no_grad():  #! here
            for _ in range(self.limit):
                new = self.cell(z, x)  #! also
                if (new - z).norm() < self.tol * new.norm():
                    z = new
                    break
                z = new
        return z  #- here
#+         return self.cell(z, x)

    def forward(self, x):
        return self.readout(self.settle(x))  #! also


def two_rings(n):
    angle, ring = 6.283 * torch.rand(n), torch.randint(0, 2, (n,))
    radius = 1.0 + ring + 0.1 * torch.randn(n)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), ring


torch.manual_seed(21)
model = Equilibrium(2, 20, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
for step in range(20):
    points, ring = two_rings(64)
    loss = F.cross_entropy(model(points), ring)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    if not step % 5:
        print(step, f"{loss.item():.4f}")
