import itertools

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4 + 3, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
trunk = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.1))
adv, aux = nn.Linear(24, 1), nn.Linear(24, 3)
opt_g = torch.optim.Adam(gen.parameters(), 2e-3)
opt_d = torch.optim.Adam([*trunk.parameters(), *adv.parameters()], 2e-3)
opt_i = torch.optim.Adam(itertools.chain(gen.parameters(), trunk.parameters(), aux.parameters()), 2e-3)


def code(n):
    c = torch.randint(0, 3, (n,))
    return torch.cat([torch.randn(n, 4), F.one_hot(c, 3).float()], 1), c


for it in range(6):
    real = torch.randn(24, 2) + 2
    z, c = code(24)
    fake = gen(z)
    opt_g.zero_grad()
    g = F.binary_cross_entropy_with_logits(adv(trunk(fake)), torch.ones(24, 1))
    g.backward()
    opt_g.step()

    opt_d.zero_grad()
    d = F.binary_cross_entropy_with_logits(adv(trunk(real)), torch.ones(24, 1))
    d = (d + F.binary_cross_entropy_with_logits(adv(trunk(fake.detach())), torch.zeros(24, 1))) / 2
    d.backward()
    opt_d.step()

    opt_i.zero_grad()
    z, c = code(24)
    info = F.cross_entropy(aux(trunk(gen(z))), c)
    info.backward()
    opt_i.step()
    print(it, g.item(), d.item(), info.item())
