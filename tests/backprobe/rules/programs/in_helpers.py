"""Mistakes that stand in a function, a method or a constructor, and show elsewhere. Written before the rules knew."""

PROGRAMS = {
    "leaf: a constructor scales the perturbation that it flagged": """
import torch
from torch import nn

class Attack:
    def __init__(self, shape, eps):
        self.delta = torch.zeros(shape, requires_grad=True) + eps  # <- BP101
    def ascend(self, model, x, y):
        loss = nn.functional.cross_entropy(model(x + self.delta), y)
        loss.backward()
        return self.delta.grad

torch.manual_seed(0)
model = nn.Linear(4, 3)
attack = Attack((1, 4), 0.1)
step = attack.ascend(model, torch.randn(6, 4), torch.randint(0, 3, (6,)))
print(step)
""",
    "leaf: a dataclass holds prompts that were stacked": """
from dataclasses import dataclass
import torch
from torch import nn

@dataclass
class Prompt:
    vectors: torch.Tensor
    def attach(self, x):
        return torch.cat([self.vectors.expand(len(x), -1, -1), x], 1)

def fresh(n, d):
    return Prompt(torch.stack([torch.randn(d, requires_grad=True) for _ in range(n)]))  # <- BP101

torch.manual_seed(1)
model, prompt = nn.Linear(4, 1), fresh(2, 4)
model(prompt.attach(torch.randn(3, 5, 4))).pow(2).mean().backward()
print(prompt.vectors.grad)
""",
    "leaf: a dict comprehension moves each tensor to another type": """
import torch

torch.manual_seed(2)
made = {"a": torch.randn(3, requires_grad=True), "b": torch.randn(3, requires_grad=True)}
latents = {name: t.to(torch.float64) for name, t in made.items()}  # <- BP101
loss = sum((t - 1).pow(2).sum() for t in latents.values())
loss.backward()
for name, t in latents.items():
    print(name, t.grad)
""",
    "leaf: a lambda prepares the image": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
prepare = lambda image: image.requires_grad_().unsqueeze(0) / 2
x = prepare(torch.rand(3, 2, 2))  # <- BP101
net(x)[0, 1].backward()
print(x.grad.abs().max())
""",
    "flags: the method flags its argument after the network ran": """
import torch
from torch import nn

class Penalty:
    def __init__(self, net):
        self.net = net
    def slope(self, x):
        out = self.net(x)
        x.requires_grad_(True)  # <- BP107
        out.sum().backward()
        return x.grad

torch.manual_seed(7)
print(Penalty(nn.Linear(3, 1)).slope(torch.randn(4, 3)))
""",
    "flags: the freezing helper sets the module's attribute": """
import torch
from torch import nn

def freeze(module):
    for child in module.children():
        child.requires_grad = False  # <- BP109

torch.manual_seed(8)
net = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 1))
freeze(net[0])
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(6, 4)).pow(2).mean().backward()
    opt.step()
""",
    "accumulation: the modulus asks for the wrong number": """
import torch
from torch import nn

torch.manual_seed(10)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
every = 4
for i in range(16):
    loss = (net(torch.randn(6, 4)) - 1).pow(2).mean() / every
    loss.backward()
    if (i + 1) % every == 0:
        opt.step()
    if i % 2 == 0:
        opt.zero_grad()  # <- BP211
""",
    "accumulation: cleared at the head of each small batch in a helper": """
import torch
from torch import nn

class Loop:
    def __init__(self, net, parts):
        self.net, self.parts = net, parts
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    def small(self, x, y):
        self.net.zero_grad()  # <- BP211
        loss = nn.functional.mse_loss(self.net(x), y) / self.parts
        loss.backward()
    def batch(self, x, y):
        for a, b in zip(x.chunk(self.parts), y.chunk(self.parts)):
            self.small(a, b)
        self.opt.step()

torch.manual_seed(11)
loop = Loop(nn.Linear(4, 1), 3)
for _ in range(4):
    loop.batch(torch.randn(9, 4), torch.randn(9, 1))
""",
    "accumulation: of two optimizers one is cleared": """
import torch
from torch import nn

torch.manual_seed(12)
body, head = nn.Linear(4, 6), nn.Linear(6, 1)
opts = {"body": torch.optim.SGD(body.parameters(), lr=0.01), "head": torch.optim.Adam(head.parameters(), lr=0.01)}
for _ in range(5):
    opts["head"].zero_grad()
    loss = (head(torch.relu(body(torch.randn(8, 4)))) - 1).pow(2).mean()
    loss.backward()  # <- BP210
    opts["body"].step()
    opts["head"].step()
""",
    "accumulation: zero_grad is named and not called": """
import torch
from torch import nn

def fit(net, opt, batches):
    for x in batches:
        opt.zero_grad  # <- BP210
        loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward()
        opt.step()

torch.manual_seed(13)
net = nn.Linear(4, 1)
fit(net, torch.optim.SGD(net.parameters(), lr=0.01), torch.randn(5, 8, 4))
""",
    "accumulation: the clear stands before the loop of epochs": """
import torch
from torch import nn

torch.manual_seed(14)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):
    opt.zero_grad()  # <- BP210
    for x in torch.randn(4, 8, 4):
        loss = (net(x) - 1).pow(2).mean()
        loss.backward()
        opt.step()
""",
    "second order: a method of a model gives slopes without a graph": """
import torch
from torch import nn

class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
    def forces(self, x):
        x = x.detach().requires_grad_()
        energy = self.net(x).sum()
        return -torch.autograd.grad(energy, x, retain_graph=True)[0]  # <- BP325
    def forward(self, x):
        return self.net(x).squeeze(-1), self.forces(x)

torch.manual_seed(15)
model = Energy()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.randn(8, 3)
    energy, force = model(x)
    loss = (energy - x.pow(2).sum(1)).pow(2).mean() + (force + 2 * x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "second order: a penalty from another function": """
import torch
from torch import nn

def slopes(critic, x):
    score = critic(x)
    (g,) = torch.autograd.grad(score.sum(), x)  # <- BP325
    return g.flatten(1)

def penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    mid = (eps * real + (1 - eps) * fake).requires_grad_(True)
    return (slopes(critic, mid).norm(dim=1) - 1).pow(2).mean()

torch.manual_seed(16)
critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(5):
    real, fake = torch.randn(8, 4) + 1, torch.randn(8, 4)
    loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(critic, real, fake)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "second order: a lambda that takes the derivative twice": """
import torch
from torch import nn

d = lambda y, x: torch.autograd.grad(y, x, torch.ones_like(y), retain_graph=True)[0]  # <- BP325

torch.manual_seed(17)
net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
x = torch.rand(6, 1, requires_grad=True)
u = net(x)
ux = d(u, x)
uxx = d(ux, x)
print(uxx)
""",
    "right: a helper gives a leaf, and a read behind it": """
import torch
from torch import nn

def prepared(image):
    return image.unsqueeze(0).div(2).detach().requires_grad_()

torch.manual_seed(19)
net = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))
x = prepared(torch.rand(3, 2, 2))
net(x)[0, 1].backward()
print(x.grad.abs().max())
""",
    "right: first-order meta-learning": """
import torch
from torch import nn
import torch.nn.functional as F

def adapted(weights, x, y):
    grads = torch.autograd.grad(F.mse_loss(F.linear(x, *weights), y), weights)
    return [w - 0.1 * g.detach() for w, g in zip(weights, grads)]

torch.manual_seed(20)
weights = [nn.Parameter(torch.randn(1, 3)), nn.Parameter(torch.zeros(1))]
meta = torch.optim.Adam(weights, lr=1e-2)
for _ in range(4):
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    loss = F.mse_loss(F.linear(x, *adapted(weights, x, y)), y)
    meta.zero_grad()
    loss.backward()
    meta.step()
""",
    "right: accumulation with a rest, cleared after each step": """
import torch
from torch import nn

torch.manual_seed(21)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
opt.zero_grad()
for i in range(10):
    ((net(torch.randn(6, 4)) - 1).pow(2).mean() / 4).backward()
    if (i + 1) % 4 == 0 or i == 9:
        opt.step()
        opt.zero_grad()
""",
    "right: unfrozen between two passes": """
import torch
from torch import nn

torch.manual_seed(22)
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
body.requires_grad_(False)
opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for step in range(6):
    if step == 3:
        body.requires_grad_(True)
    opt.zero_grad()
    head(torch.relu(body(torch.randn(6, 4)))).pow(2).mean().backward()
    opt.step()
""",
    "a loader's last batch of one, and batch norm": """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)
data = TensorDataset(torch.randn(9, 4), torch.randint(0, 2, (9,)))
loader = DataLoader(data, batch_size=4)  # <- BP668
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
""",
    "one sample is given to batch norm in training": """
import torch
from torch import nn

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
    def act(self, state):
        return self.net(state.unsqueeze(0)).argmax(1)  # <- BP668

torch.manual_seed(24)
policy = Policy()
policy.act(torch.randn(4))
""",
}
