import itertools

import torch
from torch import nn

torch.manual_seed(0)


def block(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G_AB, G_BA, D_A, D_B = block(3, 16, 3), block(3, 16, 3), block(3, 16, 1), block(3, 16, 1)
gan, cyc, idt = nn.MSELoss(), nn.L1Loss(), nn.L1Loss()
opt_G = torch.optim.Adam(itertools.chain(G_AB.parameters(), G_BA.parameters()), lr=1e-3, betas=(0.5, 0.999))
opt_D_A, opt_D_B = torch.optim.Adam(D_A.parameters(), lr=1e-3), torch.optim.Adam(D_B.parameters(), lr=1e-3)
for step in range(4):
    a, b = torch.randn(8, 3), torch.randn(8, 3) * 0.5 + 2
    real, fake = torch.ones(8, 1), torch.zeros(8, 1)
    opt_G.zero_grad()
    fake_b, fake_a = G_AB(a), G_BA(b)
    loss_gan = gan(D_B(fake_b), real) + gan(D_A(fake_a), real)
    loss_cyc = cyc(G_BA(fake_b), a) + cyc(G_AB(fake_a), b)
    loss_idt = idt(G_AB(b), b) + idt(G_BA(a), a)
    loss_G = loss_gan + 10.0 * loss_cyc + 5.0 * loss_idt
    loss_G.backward()
    opt_G.step()
    for D, opt, x, y in ((D_A, opt_D_A, a, fake_a), (D_B, opt_D_B, b, fake_b)):
        opt.zero_grad()
        loss_D = (gan(D(x), real) + gan(D(y.detach()), fake)) / 2
        loss_D.backward()
        opt.step()
    print(step, loss_G.item(), loss_D.item())
