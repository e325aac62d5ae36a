import torch
from torch import nn

torch.manual_seed(1)
gen = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 2))
disc = nn.Sequential(nn.Linear(2, 12), nn.ReLU(), nn.Linear(12, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-4)
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-4)
bce = nn.functional.binary_cross_entropy_with_logits
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)

for batch in range(6):
    real = torch.randn(16, 2) + 3
    fake = gen(torch.randn(16, 4))
    g_loss = bce(disc(fake), ones)
    g_loss.backward()
    opt_g.step()
    opt_g.zero_grad()

    d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
    own = torch.autograd.grad(d_loss, disc[0].weight, retain_graph=True)[0]
    d_loss.backward()
    stepped = disc[0].weight.grad.clone()
    opt_d.step()
    opt_d.zero_grad()
print(d_loss.item(), g_loss.item())
