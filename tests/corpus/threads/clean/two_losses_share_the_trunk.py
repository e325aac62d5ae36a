import torch
from torch import nn

torch.manual_seed(23)
trunk, rec, cls = nn.Linear(8, 6), nn.Linear(6, 8), nn.Linear(6, 3)
opt = torch.optim.Adam([*trunk.parameters(), *rec.parameters(), *cls.parameters()], lr=1e-3)
for _ in range(8):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    h = torch.tanh(trunk(x))
    opt.zero_grad()
    (rec(h) - x).pow(2).mean().backward(retain_graph=True)
    class_loss = nn.functional.cross_entropy(cls(h), y)
    class_loss.backward()
    opt.step()
print(h.abs().mean().item())
