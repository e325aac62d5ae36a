import itertools

import torch
import torch.nn as nn

torch.manual_seed(43)
g_ab, g_ba = nn.Linear(6, 6), nn.Linear(6, 6)
d_a, d_b = nn.Linear(6, 1), nn.Linear(6, 1)
g_opt = torch.optim.Adam(itertools.chain(g_ab.parameters(), g_ba.parameters()), lr=1e-3)
d_opt = torch.optim.Adam(itertools.chain(d_a.parameters(), d_b.parameters()), lr=1e-3)
l1, mse = nn.L1Loss(), nn.MSELoss()
one, zero = torch.ones(10, 1), torch.zeros(10, 1)
for step in range(4):
    a, b = torch.randn(10, 6), torch.randn(10, 6) + 2
    fake_b, fake_a = g_ab(a), g_ba(b)
    adversarial = mse(d_b(fake_b), one) + mse(d_a(fake_a), one)
    cycle = l1(g_ba(fake_b), a) + l1(g_ab(fake_a), b)
    identity = l1(g_ba(a), a) + l1(g_ab(b), b)
    g_opt.zero_grad()
    (adversarial + 10 * cycle + 5 * identity).backward()
    g_opt.step()
    d_loss = mse(d_a(a), one) + mse(d_a(fake_a.detach()), zero) + mse(d_b(b), one) + mse(d_b(fake_b.detach()), zero)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
print(cycle.item(), d_loss.item())
