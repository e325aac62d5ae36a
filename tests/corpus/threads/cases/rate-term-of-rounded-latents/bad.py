import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(21)
encoder = nn.Sequential(nn.Linear(12, 16), nn.GELU(), nn.Linear(16, 5))
decoder = nn.Sequential(nn.Linear(5, 16), nn.GELU(), nn.Linear(16, 12))
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)


def quantise(z):
    return torch.round(z * 4) / 4


def run_epoch(batches):
    total = 0.0
    for x in batches:
        latents = quantise(encoder(x))
        recon = decoder(latents)
        loss = F.mse_loss(recon, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    return total / len(batches)


data = torch.randn(10, 16, 12)
for epoch in range(3):
    print(run_epoch(data))
