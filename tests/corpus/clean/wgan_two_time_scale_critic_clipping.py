import torch
import torch.nn as nn

torch.manual_seed(3)
latent = 6
G = nn.Sequential(nn.Linear(latent, 24), nn.ReLU(), nn.Linear(24, 2))
D = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=1e-4)
opt_d = torch.optim.RMSprop(D.parameters(), lr=4e-4)
n_critic, clip = 3, 0.05


def real_batch(n=32):
    angle = torch.rand(n) * 6.283
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


for it in range(8):
    for _ in range(n_critic):
        x = real_batch()
        with torch.no_grad():
            fake = G(torch.randn(32, latent))
        loss_d = D(fake).mean() - D(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        for p in D.parameters():
            p.data.clamp_(-clip, clip)
    opt_g.zero_grad()
    loss_g = -D(G(torch.randn(32, latent))).mean()
    loss_g.backward()
    opt_g.step()
    if it % 4 == 0:
        print(f"{it}: W={-loss_d.item():.4f} G={loss_g.item():.4f}")
