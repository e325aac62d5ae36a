import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
encoder, decoder = nn.Linear(10, 4), nn.Linear(4, 10)
codebook = nn.Embedding(8, 4)
disc = nn.Sequential(nn.Linear(10, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
opt_g = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codebook.parameters()], lr=1e-3)
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3)
for images in torch.rand(5, 12, 10):
    z = encoder(images)
    code = codebook(torch.cdist(z, codebook.weight).argmin(1))
    vq = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
    recon = decoder(z + (code - z).detach())
    g_loss = F.l1_loss(recon, images) + vq + 0.1 * (disc(recon) - 1).pow(2).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    d_loss = disc(recon.detach()).pow(2).mean() + (disc(images) - 1).pow(2).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
print(g_loss.item(), d_loss.item())
