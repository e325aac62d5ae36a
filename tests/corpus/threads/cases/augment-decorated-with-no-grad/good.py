import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
encoder = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 12))
projector = nn.Linear(12, 6)
opt = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=1e-3)


def embed_view(x, noise=0.1):
    view = x + noise * torch.randn_like(x)
    return encoder(view)


def nt_xent(a, b, temperature=0.2):
    logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).t() / temperature
    return F.cross_entropy(logits, torch.arange(len(a)))


for step in range(8):
    x = torch.randn(32, 16)
    za, zb = projector(embed_view(x)), projector(embed_view(x))
    loss = nt_xent(za, zb)
    opt.zero_grad()
    loss.backward()
    opt.step()
