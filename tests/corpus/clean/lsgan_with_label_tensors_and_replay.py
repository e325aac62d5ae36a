import random

import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)


class ReplayPool:
    def __init__(self, size):
        self.size, self.items = size, []

    def query(self, batch):
        out = []
        for item in batch.detach():
            if len(self.items) < self.size:
                self.items.append(item.clone())
                out.append(item)
            elif random.random() > 0.5:
                k = random.randrange(self.size)
                out.append(self.items[k].clone())
                self.items[k] = item.clone()
            else:
                out.append(item)
        return torch.stack(out)


G = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.InstanceNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Tanh())
D = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3, 1, 1))
mse, l1 = nn.MSELoss(), nn.L1Loss()
og = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999))
od = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
pool = ReplayPool(12)
for step in range(5):
    a = torch.rand(4, 1, 8, 8) * 2 - 1
    b = -a.flip(-1)
    # generator
    for p in D.parameters():
        p.requires_grad = False
    og.zero_grad()
    fake = G(a)
    pred = D(fake)
    valid = torch.ones_like(pred)
    loss_g = mse(pred, valid) + 10 * l1(fake, b)
    loss_g.backward()
    og.step()
    # discriminator
    for p in D.parameters():
        p.requires_grad = True
    od.zero_grad()
    loss_d = 0.5 * (mse(D(b), torch.ones(4, 1, 4, 4)) + mse(D(pool.query(fake)), torch.zeros(4, 1, 4, 4)))
    loss_d.backward()
    od.step()
    print(f"[{step}] G {loss_g.item():.3f} D {loss_d.item():.3f}")
