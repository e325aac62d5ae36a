"""BP325 missing-create-graph."""

MATCHED = """
import torch

w = torch.ones(3, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
x = torch.randn(4, 3, requires_grad=True)

def distance(ones, others):
    return sum((a - b).pow(2).sum() for a, b in zip(ones, others))

g_real = [g.detach() for g in torch.autograd.grad((torch.randn(4, 3) * w + b).tanh().sum(), [w, b])]
g_syn = torch.autograd.grad((x * w + b).tanh().sum(), [w, b]){mark}
loss = distance({of}, g_real)
loss.backward()
"""

PENALTY = """
import torch
w = torch.nn.Parameter(torch.ones(3))
optimizer = torch.optim.SGD([w], lr=0.01)
rate = 0.1
for x in torch.randn(3, 8, 3):
    fit = (x @ w).tanh().pow(2).mean()
    (slope,) = torch.autograd.grad(fit, w, retain_graph=True){mark}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

SHAPES = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""

PROGRAMS = {
    "a step on fast weights": """
import torch
w = torch.ones(3, requires_grad=True)
fast = w.clone()
(g,) = torch.autograd.grad((fast * 2).pow(2).mean(), fast)
fast = fast - 0.1 * g
outer = (fast * 3).pow(2).mean()
outer.backward()
""",
    "steps on several fast weights": """
import torch
w = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
fast = [one.clone() for one in w]
for _ in range(2):
    loss = sum((one * 2).pow(2).mean() for one in fast)
    grads = torch.autograd.grad(loss, fast)
    fast = [one - 0.1 * g for one, g in zip(fast, grads)]
outer = sum((one * 3).pow(2).mean() for one in fast)
outer.backward()
""",
    "a penalty that a function returns as one expression": """
import torch

def penalty(model, x):
    out = model(x).sum()
    (g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
    return ((g.norm(dim=1) - 1) ** 2).mean()

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
gp = penalty(model, x)
loss = model(x).pow(2).mean() + 10 * gp
loss.backward()
""",
    "a loss that a function returns as one expression": """
import torch

def critic(model, x):
    out = model(x).sum()
    (g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
    return out + ((g.norm(dim=1) - 1) ** 2).mean()

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
loss = critic(model, x)
loss.backward()
""",
    "one expression": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
penalty = torch.autograd.grad(out, x, retain_graph=True)[0].pow(2).sum()  # <- BP325
loss = out + penalty
(loss / 2).backward()
""",
    "by a helper, create_graph False written out": """
import torch
from torch.autograd import grad

def slope(value, at):
    return grad(value, at, create_graph=False, retain_graph=True)[0]  # <- BP325

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
g = slope(out, x)
loss = out + (g.norm(dim=1) - 1).pow(2).mean()
loss.backward()
""",
    "the gradient has another name inside a helper": """
import torch

def slope(value, at):
    (inner,) = torch.autograd.grad(value, at, retain_graph=True)  # <- BP325
    return inner

model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
g = slope(out, x)
loss = out + g.norm()
loss.backward()
""",
    "an untrained factor lies before the root": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
scale = torch.ones(1, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, retain_graph=True)  # <- BP325
loss = out + g.norm()
(loss * scale).sum().backward()
""",
    "the value is never differentiated": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, retain_graph=True)
shown = out + g.norm()
out.backward()
""",
    "made under no_grad it is a weight": """
import torch
x = torch.ones(3, requires_grad=True)
losses = x**2
(g,) = torch.autograd.grad(losses.sum(), x, retain_graph=True)
with torch.no_grad():
    weights = g.abs() / g.abs().sum()
loss = (weights * losses).sum()
loss.backward()
""",
    "functional weights: the attack goes through a matrix product": """
import torch
weight = torch.ones(3, 1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
x = torch.ones(2, 3)
for _ in range(2):
    x = x.detach().requires_grad_()
    (g,) = torch.autograd.grad((x @ weight).sum(), x)
    attacked = x + 0.1 * g.sign()
    loss = (attacked @ weight).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
    "a second call that raised is not explained by a later gradient": """
import torch
x = torch.ones(3, requires_grad=True)
y = torch.ones(3)
try:
    y.sum().backward()
except RuntimeError:
    pass
(g,) = torch.autograd.grad((x**2).sum(), x)
print(g)
""",
    "a gradient penalty that is right": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
out = model(x).pow(2).sum()
(g,) = torch.autograd.grad(out, x, create_graph=True)
(out + g.norm()).backward()
""",
    "several gradients at once": """
import torch
model = torch.nn.Linear(3, 1)
x = torch.ones(2, 3, requires_grad=True)
z = torch.ones(2, 3, requires_grad=True)
out = (model(x) * model(z)).sum()
grads = torch.autograd.grad(out, (x, z), retain_graph=True)  # <- BP325
penalty = sum(g.pow(2).sum() for g in grads)
loss = out + penalty
loss.backward()
""",
    "the penalty's function is called inside the expression of the loss": """
import torch

def penalty(model, x):
    (g,) = torch.autograd.grad(model(x).sum(), x)  # <- BP325
    return (g.norm(dim=1) - 1).pow(2).mean()

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
loss = model(x).mean() + 10 * penalty(model, x)
loss.backward()
""",
    "a helper's gradient is used inside the expression of the loss": """
import torch

def slope(value, at):
    return torch.autograd.grad(value, at, retain_graph=True)[0]  # <- BP325

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
out = model(x).sum()
loss = out + slope(out, x).norm()
loss.backward()
""",
    "the penalty is right, inside the expression of the loss": """
import torch

def penalty(model, x):
    (g,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return (g.norm(dim=1) - 1).pow(2).mean()

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
loss = model(x).mean() + 10 * penalty(model, x)
loss.backward()
""",
    "a function in the expression gives a weight that is detached": """
import torch

def weight(model, x):
    (g,) = torch.autograd.grad(model(x).sum(), x)
    return g.norm(dim=1).mean().detach()

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
loss = weight(model, x) * model(x).mean()
loss.backward()
""",
    "a function in the expression gives a weight made under no_grad": """
import torch

def weight(model, x):
    (g,) = torch.autograd.grad(model(x).sum(), x)
    with torch.no_grad():
        return g.norm(dim=1).mean()

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
loss = weight(model, x) * model(x).mean()
loss.backward()
""",
    "a function returns it under a name, and the call stands in an expression": """
import torch

def score(x):
    x = x.detach().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x)  # <- BP325
    return slope

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
noise = torch.ones(2, 3)
loss = (0.5 * score(noise) + noise).square().mean()
loss.backward()
""",
    "an attack inside the expression goes through the model": """
import torch

def noise(model, x):
    (g,) = torch.autograd.grad(model(x).sum(), x)
    return 0.1 * g.sign()

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
x = torch.ones(2, 3, requires_grad=True)
loss = model(x + noise(model, x)).mean()
loss.backward()
""",
    "a distance of gradients that a function makes": MATCHED.format(mark="  # <- BP325", of="g_syn"),
    "a distance of gradients that are detached is not said to lack create_graph": MATCHED.format(
        mark="", of="[g.detach() for g in g_syn]"
    ).replace("loss.backward()", "loss.backward()  # <- BP901"),
    "a penalty on the gradient of weights is added": PENALTY.format(
        mark="  # <- BP325", loss="fit + 0.1 * slope.pow(2).sum()"
    ),
    "a penalty on the gradient of weights has a name": PENALTY.format(
        mark="  # <- BP325", loss="fit + rate * penalty"
    ).replace("    loss =", "    penalty = slope.pow(2).sum()\n    loss ="),
    "the gradient of weights scales the loss": PENALTY.format(mark="", loss="fit / slope.norm() + 0.1 * fit"),
    "the gradient of weights is multiplied with them": PENALTY.format(mark="", loss="fit + (slope * w).sum()"),
    "the gradient of weights is taken off it": PENALTY.format(mark="", loss="fit - slope.norm()"),
    "Sobolev training, the teacher's slope is a target": SHAPES
    + """
teacher = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
student = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(student.parameters())
for _ in range(4):
    x = torch.randn(16, 2, requires_grad=True)
    (wanted,) = torch.autograd.grad(teacher(x).sum(), x)
    (slope,) = torch.autograd.grad(student(x).sum(), x, create_graph=True)
    loss = (slope - wanted).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a network learns a score that grad() gave": SHAPES
    + """
net = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters())

def log_density(x):
    return torch.logsumexp(torch.stack([-(x - 2).pow(2).sum(1), -(x + 2).pow(2).sum(1)]), 0)

for _ in range(4):
    x = torch.randn(32, 2, requires_grad=True)
    score = torch.autograd.grad(log_density(x).sum(), x)[0]
    loss = (net(x.detach()) - score).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the same name logged first, differentiated later": SHAPES
    + """
critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(critic.parameters())
for _ in range(4):
    x = torch.randn(8, 3, requires_grad=True)
    score = critic(x)
    (g,) = torch.autograd.grad(score.sum(), x, retain_graph=True)
    print(g.norm().item())
    (g,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    loss = score.mean() + (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a direction for a Hessian product is a constant": SHAPES
    + """
f = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).requires_grad_(False)
x = torch.randn(4, 3, requires_grad=True)
(v,) = torch.autograd.grad(f(x).sum(), x)
(g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
(hv,) = torch.autograd.grad((g * v).sum(), x)
print(hv.norm())
""",
    "the weights of examples, by the gradient of a step": """
import torch
from torch.func import functional_call
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y, cx, cy = torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.randn(6, 4), torch.randint(0, 2, (6,))
cost = torch.nn.functional.cross_entropy
for _ in range(2):
    now, share = dict(net.named_parameters()), torch.zeros(8, requires_grad=True)
    inner = (share * cost(functional_call(net, now, (x,)), y, reduction="none")).sum()
    slopes = torch.autograd.grad(inner, list(now.values()))  # <- BP325
    moved = {name: p - 0.1 * g for (name, p), g in zip(now.items(), slopes)}
    (wanted,) = torch.autograd.grad(cost(functional_call(net, moved, (cx,)), cy), share)
    opt.zero_grad()
    ((-wanted).clamp(min=0) * cost(net(x), y, reduction="none")).sum().backward()
    opt.step()
""",
    "right: the same with its history, and the weights as numbers": """
import torch
from torch.func import functional_call
net = torch.nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y, cx, cy = torch.randn(8, 4), torch.randint(0, 2, (8,)), torch.randn(6, 4), torch.randint(0, 2, (6,))
cost = torch.nn.functional.cross_entropy
for _ in range(3):
    now, share = dict(net.named_parameters()), torch.zeros(8, requires_grad=True)
    inner = (share * cost(functional_call(net, now, (x,)), y, reduction="none")).sum()
    slopes = torch.autograd.grad(inner, list(now.values()), create_graph=True)
    moved = {name: p - 0.1 * g for (name, p), g in zip(now.items(), slopes)}
    (wanted,) = torch.autograd.grad(cost(functional_call(net, moved, (cx,)), cy), share)
    weight = (-wanted).clamp(min=0)
    loss = (weight * cost(net(x), y, reduction="none")).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a call over several lines with retain_graph": """
import torch
from torch import nn

torch.manual_seed(0)
critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(critic.parameters(), lr=1e-3)


def slope(points):
    points = points.clone().requires_grad_()
    score = critic(points)
    return torch.autograd.grad(
        score,
        points,
        torch.ones_like(score),
        retain_graph=True,  # <- BP325
    )[0].norm(dim=1)


for _ in range(3):
    x = torch.randn(6, 3)
    loss = critic(x).mean() + ((slope(x) - 1) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a term is added where the sum is walked": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for x in torch.randn(4, 16, 5):
    x.requires_grad_(True)
    out = net(x)
    slope, = torch.autograd.grad(out.sum(), x, retain_graph=True)  # <- BP325
    fit, rough = out.square().mean(), slope.square().sum(1).mean()
    opt.zero_grad()
    (fit + 0.1 * rough).backward()
    opt.step()
""",
    "a method gives both terms as a tuple, the sum has no name": """
import torch
from torch import nn

torch.manual_seed(4)

class Objective:
    def terms(self, net, x):
        x = x.clone().requires_grad_()
        out = net(x)
        slope = torch.autograd.grad(out.logsumexp(-1).sum(), x, retain_graph=True)[0]  # <- BP325
        return out.square().mean(), slope.abs().mean()

net, objective = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2)), Objective()
opt = torch.optim.Adam(net.parameters(), 1e-2)
for x in torch.randn(4, 16, 5):
    fit, rough = objective.terms(net, x)
    opt.zero_grad()
    (fit + rough).backward()
    opt.step()
""",
    "right: the term has its history, the sum has no name": """
import torch
from torch import nn

torch.manual_seed(4)
net = nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), 1e-2)
for x in torch.randn(4, 16, 5):
    x.requires_grad_(True)
    out = net(x)
    slope, = torch.autograd.grad(out.sum(), x, create_graph=True)
    fit, rough = out.square().mean(), slope.square().sum(1).mean()
    opt.zero_grad()
    (fit + 0.1 * rough).backward()
    opt.step()
""",
    "right: the norms of two gradients weigh two losses, the sum has no name": """
import torch
from torch import nn

torch.manual_seed(4)
body, head, other = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 1)
opt = torch.optim.Adam([*body.parameters(), *head.parameters(), *other.parameters()], 1e-2)
for x in torch.randn(4, 16, 5):
    h = body(x).tanh()
    fit, aux = head(h).square().mean(), other(h).abs().mean()
    a = torch.autograd.grad(fit, body.weight, retain_graph=True)[0].norm()
    b = torch.autograd.grad(aux, body.weight, retain_graph=True)[0].norm()
    opt.zero_grad()
    (fit + a / (b + 1e-8) * aux).backward()
    opt.step()
""",
    "weights of examples that only the gradient of a step depends on": """
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
scores = torch.zeros(8, requires_grad=True)
opt, score_opt = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SGD([scores], lr=1.0)
x, clean = torch.randn(8, 3), torch.randn(5, 3)

def fit(given, weights):
    return (weights * (given - x.sum(1, keepdim=True)).pow(2).squeeze(1)).mean()

for _ in range(4):
    params = dict(net.named_parameters())
    grads = torch.autograd.grad(fit(net(x), scores.sigmoid()), list(params.values()))  # <- BP325
    ahead = {name: p - 0.5 * g for (name, p), g in zip(params.items(), grads)}
    outer = (functional_call(net, ahead, (clean,)) - clean.sum(1, keepdim=True)).pow(2).mean()
    score_opt.zero_grad()
    outer.backward()
    score_opt.step()
    opt.zero_grad()
    fit(net(x), scores.sigmoid().detach()).backward()
    opt.step()
""",
    "a learned loss inside of a trainer's inner step": """
import torch
from torch import nn

class Learner:
    def __init__(self):
        self.w = torch.randn(3, 1).requires_grad_()
        self.critic = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        self.meta = torch.optim.Adam(self.critic.parameters(), lr=1e-2)

    def inner(self, x, y):
        loss = self.critic(torch.cat([x @ self.w, y], 1)).pow(2).mean()
        (slope,) = torch.autograd.grad(loss, [self.w])  # <- BP325
        return self.w - 0.1 * slope

    def step(self, x, y):
        fast = self.inner(x, y)
        outer = (x @ fast - y).pow(2).mean()
        self.meta.zero_grad()
        outer.backward()
        self.meta.step()
        with torch.no_grad():
            self.w.copy_(fast)

learner = Learner()
for x in torch.randn(4, 8, 3):
    learner.step(x, x.sum(1, keepdim=True))
""",
    "the regularisation strength, by a list of fast weights": """
import torch

torch.manual_seed(0)
w, b = torch.randn(3, 1, requires_grad=True), torch.zeros(1, requires_grad=True)
log_decay = torch.zeros((), requires_grad=True)
hyper = torch.optim.SGD([log_decay], lr=0.1)
for x in torch.randn(4, 8, 3):
    y = x.sum(1, keepdim=True)
    inner = (x @ w + b - y).pow(2).mean() + log_decay.exp() * w.pow(2).sum()
    slopes = torch.autograd.grad(inner, (w, b))  # <- BP325
    fast = [one - 0.1 * slope for one, slope in zip((w, b), slopes)]
    valid = (x.flip(0) @ fast[0] + fast[1] - y.flip(0)).pow(2).mean()
    hyper.zero_grad()
    valid.backward()
    hyper.step()
    with torch.no_grad():
        w.copy_(fast[0])
        b.copy_(fast[1])
""",
    "right: first-order steps, and the inner loss has nothing of its own to learn": """
import torch
from torch import nn
from torch.func import functional_call

net = nn.Linear(3, 1)
meta = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 3):
    y = x.sum(1, keepdim=True)
    params = dict(net.named_parameters())
    grads = torch.autograd.grad((net(x) - y).pow(2).mean(), list(params.values()))
    fast = {name: p - 0.1 * g for (name, p), g in zip(params.items(), grads)}
    outer = (functional_call(net, fast, (x.flip(1),)) - y).pow(2).mean()
    meta.zero_grad()
    outer.backward()
    meta.step()
""",
    "right: the learned rate scales a gradient that is a constant": """
import torch

w = torch.randn(3, 1, requires_grad=True)
log_rate = torch.zeros((), requires_grad=True)
hyper = torch.optim.SGD([log_rate], lr=0.1)
for x in torch.randn(4, 8, 3):
    y = x.sum(1, keepdim=True)
    (slope,) = torch.autograd.grad((x @ w - y).pow(2).mean(), w)
    fast = w - log_rate.exp() * slope
    hyper.zero_grad()
    (x.flip(0) @ fast - y.flip(0)).pow(2).mean().backward()
    hyper.step()
""",
    "right: an attack on the input, and a weight that the other loss trains": """
import torch
from torch import nn

net, scale = nn.Linear(3, 1), nn.Parameter(torch.ones(()))
opt = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
for x in torch.randn(4, 8, 3):
    y = x.sum(1, keepdim=True)
    x.requires_grad_()
    (slope,) = torch.autograd.grad((scale * (net(x) - y)).pow(2).mean(), x)
    attacked = x + 0.1 * slope
    loss = (scale * (net(attacked) - y.detach())).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the weights of examples are not trained yet": """
import torch
from torch import nn
from torch.func import functional_call

net = nn.Linear(3, 1)
scores = torch.zeros(8, requires_grad=True)
opt, later = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.SGD([scores], lr=1.0)
for turn, x in enumerate(torch.randn(4, 8, 3)):
    y = x.sum(1, keepdim=True)
    params = dict(net.named_parameters())
    inner = (scores.sigmoid() * (net(x) - y).pow(2).squeeze(1)).mean()
    grads = torch.autograd.grad(inner, list(params.values()))
    fast = {name: p - 0.1 * g for (name, p), g in zip(params.items(), grads)}
    opt.zero_grad()
    (functional_call(net, fast, (x.flip(1),)) - y).pow(2).mean().backward()
    opt.step()
    if turn > 10:
        later.step()
""",
    "what the gradient is taken of is itself detached in the step": """
import torch

w = torch.randn(3, 1, requires_grad=True)
optimizer = torch.optim.SGD([w], lr=0.1)
scale = torch.ones((), requires_grad=True)
other = torch.optim.SGD([scale], lr=0.1)
for x in torch.randn(4, 8, 3):
    y = x.sum(1, keepdim=True)
    (slope,) = torch.autograd.grad((x @ w - y).pow(2).mean(), w)
    fast = scale * w.detach() - 0.1 * slope  # <- BP601
    optimizer.zero_grad()
    other.zero_grad()
    (x.flip(0) @ fast - y.flip(0)).pow(2).mean().backward()
    optimizer.step()
    other.step()
""",
    "a function of the points gives the residual, of their shape": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

def derivative(u, x):
    (du,) = torch.autograd.grad(u, x, torch.ones_like(u), retain_graph=True)  # <- BP325
    return du

def residual(x):
    x = x.requires_grad_(True)
    slope = derivative(net(x), x)
    wanted = torch.cos(x)
    return slope - wanted

for _ in range(6):
    x = torch.rand(16, 1) * 6
    off = residual(x)
    physics = off.pow(2).mean()
    loss = physics + net(torch.zeros(1, 1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a function of the points gives the residual, of their shape, with a graph": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

def derivative(u, x):
    (du,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
    return du

def residual(x):
    x = x.requires_grad_(True)
    slope = derivative(net(x), x)
    wanted = torch.cos(x)
    return slope - wanted

for _ in range(6):
    x = torch.rand(16, 1) * 6
    off = residual(x)
    physics = off.pow(2).mean()
    loss = physics + net(torch.zeros(1, 1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a function of the points gives them after a step": """
import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)

def moved(x):
    (slope,) = torch.autograd.grad(net(x).sum(), x)
    return x - 0.1 * slope

for _ in range(6):
    x = torch.randn(16, 2, requires_grad=True)
    y = moved(x)
    loss = net(y).mean() - net(x.detach()).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
