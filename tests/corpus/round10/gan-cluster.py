# /// case
# title = "The generator minimises log(1 - D), which is flat where the discriminator is sure"
# category = "scale"
# kind = "saturating-generator-loss"
# kinds_also_ok = ["vanishing-generator-gradient", "minimax-loss-saturates", "vanishing-gradient"]
# severity = "warning"
# names = ["g_loss", "logsigmoid", "disc", "gen"]
# symptom = "the generator's gradients vanish and its samples stay where they began"
# symptom_check = "max(reach[-20:]) < 1e-3"
# cause = "The gradient of log(1 - sigmoid(s)) is sigmoid(s), which is nearly zero for samples that are rejected with confidence."
# fix = "-logsigmoid(disc(fake)), the non-saturating loss"
# ///
import functools

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(9)
LATENT, BATCH, ROUNDS, D_STEPS = 4, 64, 200, 2


def block(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers[:-1])


def real():
    return torch.tensor([6.0, -5.0]) + 0.5 * torch.randn(BATCH, 2)


noise = functools.partial(torch.randn, BATCH, LATENT)
gen, disc = block(LATENT, 32, 32, 2), block(2, 32, 32, 1)
g_opt = optim.SGD(gen.parameters(), lr=0.02, momentum=0.5)
d_opt = optim.Adam(disc.parameters(), lr=5e-3, betas=(0.5, 0.9))


def train_discriminator():
    with torch.no_grad():
        fake = gen(noise())
    d_loss = -(F.logsigmoid(disc(real())) + F.logsigmoid(-disc(fake))).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    return d_loss.item()


def train_generator():
    disc.requires_grad_(False)
    g_loss = F.logsigmoid(-disc(gen(noise()))).mean()  #- here
#+     g_loss = -F.logsigmoid(disc(gen(noise()))).mean()
    g_opt.zero_grad()
    g_loss.backward()  #! also
    g_opt.step()  #! also
    disc.requires_grad_(True)
    return sum(p.grad.norm().item() for p in gen.parameters())


@torch.no_grad()
def distance():
    return (gen(noise()).mean(0) - real().mean(0)).norm().item()


begin = distance()
fools, reach = [], []
for _ in range(ROUNDS):
    fools.append(sum(train_discriminator() for _ in range(D_STEPS)) / D_STEPS)
    reach.append(train_generator())
print("distance", begin, "->", distance())
print("d loss", fools[0], fools[-1], "g grad", reach[0], reach[-1])
