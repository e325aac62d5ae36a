import torch
from torch import nn

torch.manual_seed(0)
enc, dec = nn.Linear(6, 3), nn.Linear(3, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)


def quantise(z):
    q = torch.round(z * 8) / 8
    return z + (q - z).detach()


for _ in range(10):
    x = torch.randn(16, 6)
    loss = (dec(quantise(enc(x))) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
