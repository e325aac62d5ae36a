# /// case
# title = "The generator's loss reuses the detached fake"
# category = "loss"
# kind = "generator-loss-detached"
# kinds_also_ok = ["graph-break", "wrong-loss-operand", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["fake", "detach", "loss_g"]
# symptom = "the generator never receives a gradient"
# symptom_check = 'all(p.grad is None for p in gan["G"].parameters())'
# cause = "fake was detached for the discriminator and the name is reused"
# fix = "detach only in the discriminator's term"
# ///
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
    fake = gan["G"](torch.randn(32, 3)).detach()  #- here
#+     fake = gan["G"](torch.randn(32, 3))

    opts["D"].zero_grad()
    loss_d = hinge_d(gan["D"](real), gan["D"](fake))  #-
#+     loss_d = hinge_d(gan["D"](real), gan["D"](fake.detach()))
    loss_d.backward()
    opts["D"].step()

    opts["G"].zero_grad()
    loss_g = -gan["D"](fake).mean()  #! also
    loss_g.backward()  #! also
    opts["G"].step()  #! also
    history["D"].append(loss_d.item())
    history["G"].append(loss_g.item())
print({k: sum(v[-5:]) / 5 for k, v in history.items()})
