import torch
from torch import nn

torch.manual_seed(17)
model = nn.Sequential(nn.Linear(2, 24), nn.Softplus(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(8):
    x = torch.randn(40, 2, requires_grad=True)
    energy = model(x)
    force = -torch.autograd.grad(energy.sum(), x, create_graph=True)[0]
    with torch.no_grad():
        true_energy, true_force = x.pow(2).sum(1, keepdim=True), -2 * x
    loss = nn.functional.mse_loss(energy, true_energy) + nn.functional.mse_loss(force, true_force)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
