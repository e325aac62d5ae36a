"""BP817 larger-loss-dropped."""

PROGRAMS = {
    "returns first loss only": """
import torch
from torch import nn
torch.manual_seed(0)
net, head = nn.Linear(4, 6), nn.Linear(6, 2)
opt = torch.optim.Adam([*net.parameters(), *head.parameters()], 1e-2)
def compute(x, y):
    h = net(x).relu()
    ce = nn.functional.cross_entropy(head(h), y)
    sparsity = h.abs().mean()
    total = ce + 0.01 * sparsity  # <- BP817
    return {"loss": ce, "total": total.item()}
for i in range(4):
    out = compute(torch.randn(8, 4), torch.randint(0, 2, (8,)))
    opt.zero_grad()
    out["loss"].backward()
    opt.step()
""",
    "kl added after and root walked": """
import torch
from torch import nn
torch.manual_seed(0)
enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], 1e-2)
for x in torch.randn(4, 8, 6):
    mu, lv = enc(x).chunk(2, -1)
    z = mu + torch.randn_like(mu) * (0.5 * lv).exp()
    recon = (dec(z) - x).pow(2).mean()
    kl = -0.5 * (1 + lv - mu.pow(2) - lv.exp()).mean()
    elbo = recon + kl  # <- BP817
    opt.zero_grad()
    recon.backward()
    opt.step()
""",
    "good two losses walked one after another, total logged": """
import torch
from torch import nn
torch.manual_seed(0)
d, g = nn.Linear(4, 1), nn.Linear(2, 4)
od, og = torch.optim.Adam(d.parameters(), 1e-3), torch.optim.Adam(g.parameters(), 1e-3)
for x in torch.randn(4, 8, 4):
    fake = g(torch.randn(8, 2))
    real_loss = (d(x) - 1).pow(2).mean()
    fake_loss = d(fake.detach()).pow(2).mean()
    od.zero_grad(); real_loss.backward(); fake_loss.backward(); od.step()
    total = real_loss + fake_loss
    gen = (d(fake) - 1).pow(2).mean()
    og.zero_grad(); gen.backward(); og.step()
    shown = (total + gen).item()
""",
    "good penalty after a warm up": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for epoch in range(6):
    fit = (net(torch.randn(8, 4)) - 1).pow(2).mean()
    total = fit + 0.1 * net.weight.abs().sum()
    opt.zero_grad()
    (fit if epoch < 3 else total).backward()
    opt.step()
""",
}
