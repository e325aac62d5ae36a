"""Gradients that a caller has switched off (BP322, BP602), and which of several `no_grad` is the cause."""

PROGRAMS = {
    "attack inside no grad evaluation": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(6, 3)
def fgsm(x, y, eps=0.1):
    x = x.clone().requires_grad_(True)
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    return (x + eps * x.grad.sign()).detach()
with torch.no_grad():  # <- BP322
    for _ in range(2):
        x, y = torch.rand(8, 6), torch.randint(0, 3, (8,))
        print((net(fgsm(x, y)).argmax(1) == y).float().mean())
""",
    "latents optimised in sampler under no grad": """
import torch
from torch import nn
torch.manual_seed(0)
class Sampler:
    def __init__(self):
        self.score = nn.Linear(4, 4)
    def guide(self, z):
        z = z.detach().requires_grad_()
        energy = self.score(z).pow(2).sum()
        return torch.autograd.grad(energy, z)[0]
    def sample(self, steps):
        with torch.no_grad():  # <- BP322
            z = torch.randn(3, 4)
            for _ in range(steps):
                z = z - 0.1 * self.guide(z)
        return z
print(Sampler().sample(3))
""",
    "encoder under no grad in caller": """
import torch
from torch import nn
torch.manual_seed(0)
class Model:
    def __init__(self):
        self.enc, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.opt_enc = torch.optim.Adam(self.enc.parameters(), 1e-3)
        self.opt_head = torch.optim.Adam(self.head.parameters(), 1e-3)
    def encode(self, x):
        return self.enc(x * 2).relu()
    def fit(self, x, y):
        with torch.no_grad():  # <- BP602
            h = self.encode(x)
        loss = nn.functional.cross_entropy(self.head(h), y)
        self.opt_enc.zero_grad()
        self.opt_head.zero_grad()
        loss.backward()
        self.opt_enc.step()
        self.opt_head.step()
m = Model()
for _ in range(3):
    m.fit(torch.randn(8, 4), torch.randint(0, 2, (8,)))
""",
    "encoder under no grad beside autocast in caller": """
import torch
from torch import nn
torch.manual_seed(0)
class Model:
    def __init__(self):
        self.enc, self.head = nn.Linear(4, 8), nn.Linear(8, 2)
        self.opt = torch.optim.Adam([*self.enc.parameters(), *self.head.parameters()], 1e-3)
    def encode(self, x):
        return self.enc(x * 2).relu()
    def fit(self, x, y):
        with (
            torch.autocast("cpu", enabled=False),
            torch.no_grad(),  # <- BP602
        ):
            h = self.encode(x)
        loss = nn.functional.cross_entropy(self.head(h), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
m = Model()
for _ in range(3):
    m.fit(torch.randn(8, 4), torch.randint(0, 2, (8,)))
""",
    "ratio in no grad, data too": """
import torch
from torch import nn
from torch.distributions import Normal
torch.manual_seed(0)
pi, v = nn.Linear(4, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*pi.parameters(), *v.parameters()], 1e-3)
def gather():
    s = torch.randn(16, 4)
    with torch.no_grad():
        d = Normal(pi(s), 1.0)
        a = d.sample()
        return s, a, d.log_prob(a).sum(-1), torch.randn(16) - v(s).squeeze(-1)
def update(s, a, old, adv):
    d = Normal(pi(s), 1.0)
    with torch.no_grad():  # <- BP602
        r = (d.log_prob(a).sum(-1) - old).exp()
    pg = -(r * adv).mean()
    vl = (v(s).squeeze(-1) - adv).pow(2).mean()
    loss = pg + 0.5 * vl
    opt.zero_grad()
    loss.backward()
    opt.step()
for _ in range(3):
    update(*gather())
""",
    "good frozen teacher called inside no grad helper": """
import torch, copy
from torch import nn
torch.manual_seed(0)
student = nn.Linear(4, 2)
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.SGD(student.parameters(), 0.1)
def predict(m, x): return m(x).softmax(-1)
for x in torch.randn(4, 8, 4):
    with torch.no_grad():
        t = predict(teacher, x)
    loss = (predict(student, x) - t).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "good evaluation under no grad in caller": """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), 0.1)
def loss_of(x): return net(x).pow(2).mean()
for x in torch.randn(4, 8, 4):
    opt.zero_grad(); loss_of(x).backward(); opt.step()
    with torch.no_grad():
        print(loss_of(x))
""",
}
