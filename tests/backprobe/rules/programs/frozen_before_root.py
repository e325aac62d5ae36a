"""BP341 frozen-before-root."""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a method freezes the encoder, phase two trains it alone": SHAPES
    + """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(6, 4), nn.Linear(4, 2)

    def freeze(self):
        for p in self.parameters():
            p.requires_grad_(False)  # <- BP341

model = Model()
opt = torch.optim.SGD(model.parameters(), lr=0.1)

def fit(steps):
    for _ in range(steps):
        x, y = torch.randn(8, 6), torch.randint(0, 2, (8,))
        loss = F.cross_entropy(model.head(model.encoder(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()

fit(3)
model.freeze()
fit(3)
""",
    "frozen for an attack and not thawed": SHAPES
    + """
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())

def attack(x, y):
    net.requires_grad_(False)  # <- BP341
    x = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(F.cross_entropy(net(x), y), x)
    return (x + 0.1 * g.sign()).detach()

for _ in range(3):
    x, y = torch.randn(8, 5), torch.randint(0, 2, (8,))
    x = attack(x, y)
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "frozen for an attack and thawed again": SHAPES
    + """
net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters())
for _ in range(3):
    x, y = torch.randn(8, 5), torch.randint(0, 2, (8,))
    net.requires_grad_(False)
    adv = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(F.cross_entropy(net(adv), y), adv)
    net.requires_grad_(True)
    loss = F.cross_entropy(net((x + 0.1 * g.sign()).detach()), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a helper is told to freeze": """
import torch
from torch import nn
G, D = nn.Linear(2, 3), nn.Linear(3, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
def switch(net, flag):
    for p in net.parameters():
        p.requires_grad_(flag)
def critic(fake):
    loss = D(fake.detach()).mean()
    od.zero_grad(); loss.backward(); od.step()
def player(fake):
    switch(D, False)  # <- BP341
    loss = -D(fake).mean()
    og.zero_grad(); loss.backward(); og.step()
for _ in range(3):
    fake = G(torch.randn(4, 2))
    critic(fake)
    player(fake)
""",
}
