import torch
import torch.nn as nn
import torch.nn.functional as F


def build(latent=3, hidden=24):
    generator = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 1))
    discriminator = nn.Sequential(nn.Linear(1, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))
    return nn.ModuleDict({"G": generator, "D": discriminator})


def hinge_d(real_score, fake_score):
    return F.relu(1 - real_score).mean() + F.relu(1 + fake_score).mean()


torch.manual_seed(77)
gan = build()
opts = {k: torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.5, 0.9)) for k, net in gan.items()}
history = {"D": [], "G": []}
for step in range(15):
    real = 2 + 0.5 * torch.randn(32, 1)
    fake = gan["G"](torch.randn(32, 3)).detach()

    opts["D"].zero_grad()
    loss_d = hinge_d(gan["D"](real), gan["D"](fake))
    loss_d.backward()
    opts["D"].step()

    opts["G"].zero_grad()
    loss_g = -gan["D"](fake).mean()
    loss_g.backward()
    opts["G"].step()
    history["D"].append(loss_d.item())
    history["G"].append(loss_g.item())
print({k: sum(v[-5:]) / 5 for k, v in history.items()})
