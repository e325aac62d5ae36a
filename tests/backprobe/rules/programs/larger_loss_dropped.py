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
    total = ce + 0.01 * sparsity
    return {"loss": ce, "total": total.item()}  # <- BP817
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
    "the caller gets both and takes the part": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def both(x, y):
    task = nn.functional.cross_entropy(net(x), y)
    whole = task + 0.01 * net.weight.pow(2).sum()  # <- BP817
    return task, whole


for _ in range(3):
    task, whole = both(torch.randn(7, 5), torch.randint(0, 3, (7,)))
    opt.zero_grad()
    task.backward()
    opt.step()
    print(whole.item())
""",
    "a dict of losses with the part": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 3)
gate = nn.Linear(5, 3)
optimizer = torch.optim.SGD([*net.parameters(), *gate.parameters()], lr=0.1)


def losses(x, y):
    scores = net(x) * gate(x).sigmoid()
    task = nn.functional.cross_entropy(scores, y)
    sparsity = gate(x).sigmoid().mean()
    whole = task + 0.3 * sparsity
    return {"loss": task, "shown": whole.detach()}  # <- BP817


for _ in range(4):
    out = losses(torch.randn(7, 5), torch.randint(0, 3, (7,)))
    optimizer.zero_grad()
    out["loss"].backward()
    optimizer.step()
""",
    "a method returns the part": """
import torch
from torch import nn


class Beta:
    def __init__(self):
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)
        self.opt = torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=1e-3)
        self.shown = []

    def objective(self, x):
        mean, log_var = self.enc(x).chunk(2, -1)
        z = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
        fit = (self.dec(z) - x).pow(2).sum(-1).mean()
        kl = 0.5 * (mean.pow(2) + log_var.exp() - 1 - log_var).sum(-1).mean()
        total = fit + 4.0 * kl
        self.shown.append(total.item())
        return fit  # <- BP817

    def step(self, x):
        self.opt.zero_grad()
        self.objective(x).backward()
        self.opt.step()


torch.manual_seed(0)
vae = Beta()
for _ in range(4):
    vae.step(torch.randn(8, 6))
""",
    "the part is walked where the sum is made": """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(5, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def one_step(x, y):
    task = nn.functional.cross_entropy(net(x), y)
    whole = task + 0.01 * net.weight.pow(2).sum()  # <- BP817
    opt.zero_grad()
    task.backward()
    opt.step()
    return whole.item()


print([one_step(torch.randn(7, 5), torch.randint(0, 3, (7,))) for _ in range(3)])
""",
}
