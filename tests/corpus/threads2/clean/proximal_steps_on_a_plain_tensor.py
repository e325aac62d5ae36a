import torch
import torch.nn.functional as F

torch.manual_seed(33)
down, gate = torch.randn(4, 8), torch.randn(8, 10)
target = down @ F.silu(gate) + 0.1 * torch.randn(4, 10)
s = gate.clone().requires_grad_(True)
history = []
for epoch in range(12):
    recon, prox = F.mse_loss(down @ F.silu(s), target), F.mse_loss(s, gate)
    loss = 5 * recon + prox
    loss.backward()
    history.append(loss.item())
    with torch.no_grad():
        s -= 0.2 * s.grad
        s.grad.zero_()
print(history[0], history[-1], s.is_leaf)
