import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
bce = nn.functional.binary_cross_entropy_with_logits


def toggle(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


for real in torch.randn(4, 10, 2) + 1:
    toggle(D, True)
    fake = G(torch.randn(10, 2))
    d = bce(D(real), torch.ones(10, 1)) + bce(D(fake.detach()), torch.zeros(10, 1))
    od.zero_grad()
    d.backward()
    od.step()
    toggle(D, False)
    g = bce(D(fake), torch.ones(10, 1))
    og.zero_grad()
    g.backward()
    og.step()
print(d.item(), g.item())
