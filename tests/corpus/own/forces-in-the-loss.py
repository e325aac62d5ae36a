# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["forces"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
potential = nn.Sequential(nn.Linear(6, 20), nn.Softplus(), nn.Linear(20, 1))
optimizer = torch.optim.AdamW(potential.parameters(), lr=1e-3)
reference_energy = torch.randn(12)
reference_forces = torch.randn(12, 6)
positions = torch.randn(12, 6, requires_grad=True)
for epoch in range(3):
    energy = potential(positions).squeeze(-1)
    forces = -torch.autograd.grad(energy.sum(), positions, retain_graph=True)[0]  #- here
#+     forces = -torch.autograd.grad(energy.sum(), positions, create_graph=True)[0]
    loss = (energy - reference_energy).pow(2).mean() + (forces - reference_forces).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
