import torch
from torch import nn

torch.manual_seed(12)
enc, dec = nn.Linear(8, 4), nn.Linear(4, 8)
codebook = nn.Embedding(16, 4)
params = list(enc.parameters()) + list(dec.parameters()) + list(codebook.parameters())
optimizer = torch.optim.Adam(params, lr=1e-3)
for step in range(12):
    x = torch.randn(40, 8)
    z = enc(x)
    idx = torch.cdist(z, codebook.weight).argmin(dim=1)
    codes = codebook(idx)
    codebook_loss = (codes - z.detach()).square().mean()
    commitment = (z - codes.detach()).square().mean()
    quantised = z + (codes - z).detach()
    recon = (dec(quantised) - x).square().mean()
    loss = recon + codebook_loss + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
