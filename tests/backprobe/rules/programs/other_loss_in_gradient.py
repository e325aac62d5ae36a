"""Gradients that another loss left behind, in the shapes of training that people write. Written before the rule was widened."""

PROGRAMS = {
    "the generator's step comes second and the critic is cleared only there": """
import torch
from torch import nn

class Game:
    def __init__(self):
        self.g = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 4))
        self.d = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        self.og = torch.optim.Adam(self.g.parameters(), lr=1e-4)
        self.od = torch.optim.Adam(self.d.parameters(), lr=1e-4)
    def judge(self, real):
        fake = self.g(torch.randn(8, 3))
        loss = torch.relu(1 - self.d(real)).mean() + torch.relu(1 + self.d(fake)).mean()  # <- BP213
        self.od.zero_grad()
        loss.backward()
        self.od.step()
    def make(self):
        loss = -self.d(self.g(torch.randn(8, 3))).mean()
        loss.backward()
        self.og.step()
        self.og.zero_grad()

torch.manual_seed(0)
game = Game()
for _ in range(6):
    game.judge(torch.randn(8, 4) + 2)
    game.make()
""",
    "an adversary on features whose gradient into the encoder stays": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(1)
enc, cls, adv = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 2)
main = torch.optim.Adam([*enc.parameters(), *cls.parameters()], lr=1e-3)
side = torch.optim.Adam(adv.parameters(), lr=1e-3)
for _ in range(6):
    x, y, d = torch.randn(10, 6), torch.randint(0, 3, (10,)), torch.randint(0, 2, (10,))
    side.zero_grad()
    F.cross_entropy(adv(enc(x)), d).backward()  # <- BP213
    side.step()
    h = enc(x)
    F.cross_entropy(cls(h), y).backward()
    main.step()
    main.zero_grad()
""",
    "an actor's loss through a Q network whose optimizer clears after its step": """
import torch
from torch import nn

torch.manual_seed(2)
actor, q = nn.Linear(4, 2), nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
pi_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for _ in range(6):
    s, a, target = torch.randn(12, 4), torch.randn(12, 2), torch.randn(12, 1)
    (q(torch.cat([s, a], 1)) - target).pow(2).mean().backward()  # <- BP213
    q_opt.step()
    q_opt.zero_grad()
    pi_opt.zero_grad()
    (-q(torch.cat([s, torch.tanh(actor(s))], 1)).mean()).backward()
    pi_opt.step()
""",
    "right: the generator's pass fills the critic, which is cleared before its own call": """
import torch
from torch import nn

torch.manual_seed(3)
g, d = nn.Linear(3, 4), nn.Linear(4, 1)
og, od = (torch.optim.Adam(m.parameters(), lr=1e-3) for m in (g, d))
for _ in range(6):
    fake = g(torch.randn(8, 3))
    od.zero_grad()
    (d(fake.detach()).mean() - d(torch.randn(8, 4)).mean()).backward()
    od.step()
    og.zero_grad()
    (-d(fake).mean()).backward()
    og.step()
""",
    "right: three losses add up before two optimizers step": """
import torch
from torch import nn

torch.manual_seed(4)
enc, dec, reg = nn.Linear(5, 3), nn.Linear(3, 5), nn.Linear(3, 1)
first = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
second = torch.optim.SGD(reg.parameters(), lr=1e-2)
for _ in range(6):
    x = torch.randn(9, 5)
    first.zero_grad()
    second.zero_grad()
    z = enc(x)
    (dec(z) - x).pow(2).mean().backward(retain_graph=True)
    (reg(z) - x[:, :1]).pow(2).mean().backward(retain_graph=True)
    (0.01 * z.abs().mean()).backward()
    first.step()
    second.step()
""",
    "right: GradNorm reads single gradients and walks the sum": """
import torch
from torch import nn

torch.manual_seed(5)
body, a, b = nn.Linear(4, 6), nn.Linear(6, 1), nn.Linear(6, 1)
weights = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([*body.parameters(), *a.parameters(), *b.parameters()], lr=1e-3)
balance = torch.optim.SGD([weights], lr=1e-2)
for _ in range(5):
    x = torch.randn(8, 4)
    h = torch.relu(body(x))
    losses = torch.stack([a(h).pow(2).mean(), (b(h) - 1).pow(2).mean()])
    opt.zero_grad()
    (weights.detach() * losses).sum().backward(retain_graph=True)
    norms = torch.stack([torch.autograd.grad(w * l, body.weight, create_graph=True)[0].norm() for w, l in zip(weights, losses)])
    gap = (norms - norms.mean().detach()).abs().sum()
    (weights.grad,) = torch.autograd.grad(gap, [weights])
    opt.step()
    balance.step()
""",
    "right: one optimizer steps rarely and sums on purpose": """
import torch
from torch import nn

torch.manual_seed(6)
fast, slow = nn.Linear(4, 4), nn.Linear(4, 1)
quick, lazy = torch.optim.SGD(fast.parameters(), lr=0.01), torch.optim.SGD(slow.parameters(), lr=0.01)
for step in range(8):
    quick.zero_grad()
    slow(torch.tanh(fast(torch.randn(6, 4)))).pow(2).mean().backward()
    quick.step()
    if step % 4 == 3:
        lazy.step()
        lazy.zero_grad()
""",
    "both are cleared at the top, and the maker goes first": """
import torch
from torch import nn

maker, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)

def step(real, noise):
    opt_maker.zero_grad()
    opt_judge.zero_grad()  # <- BP213
    made = maker(noise)
    (judge(made) - 1).pow(2).mean().backward()
    opt_maker.step()
    loss = (judge(real) - 1).pow(2).mean() + judge(made.detach()).pow(2).mean()
    loss.backward()
    opt_judge.step()
    return loss.item()

for _ in range(4):
    step(torch.randn(8, 3), torch.randn(8, 2))
""",
    "right: the judge is cleared between the two": """
import torch
from torch import nn

maker, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)

def step(real, noise):
    opt_maker.zero_grad()
    made = maker(noise)
    (judge(made) - 1).pow(2).mean().backward()
    opt_maker.step()
    opt_judge.zero_grad()
    loss = (judge(real) - 1).pow(2).mean() + judge(made.detach()).pow(2).mean()
    loss.backward()
    opt_judge.step()
    return loss.item()

for _ in range(4):
    step(torch.randn(8, 3), torch.randn(8, 2))
""",
    "each network has a function of its own, and the clear stands in the maker's": """
import torch
from torch import nn

maker, judge = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
opt_maker = torch.optim.SGD(maker.parameters(), lr=0.1)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.1)

def make(noise):
    opt_maker.zero_grad()
    opt_judge.zero_grad()
    made = maker(noise)
    (judge(made) - 1).pow(2).mean().backward()
    opt_maker.step()
    return made.detach()

def weigh(real, made):
    loss = (judge(real) - 1).pow(2).mean() + judge(made).pow(2).mean()
    loss.backward()  # <- BP213
    opt_judge.step()

for _ in range(4):
    weigh(torch.randn(8, 3), make(torch.randn(8, 2)))
""",
}
