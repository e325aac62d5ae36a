"""BP601 graph-break-detach."""

HOOKED = """
import torch
from torch import nn
kept = {{}}

def hook(module, given, output):
    {body}

net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
net[2].register_forward_hook(hook)
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 3):
    optimizer.zero_grad()
    net(x).pow(2).mean().backward()
    optimizer.step()
"""

PROGRAMS = {
    "all is frozen once it was trained": """
import torch
from torch import nn
first, second = nn.Linear(3, 4), nn.Linear(4, 1)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
for x in torch.randn(3, 8, 3):
    optimizer.zero_grad()
    second(first(x).detach()).pow(2).mean().backward()  # <- BP601
    optimizer.step()
for weight in (*first.parameters(), *second.parameters()):
    weight.requires_grad_(False)
""",
    "a trainer class with a detached hidden state": """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.rnn = nn.GRU(8, 8, batch_first=True)
        self.out = nn.Linear(8, 10)

    def forward(self, tokens):
        states, _ = self.rnn(self.embed(tokens))
        return self.out(states.detach())  # <- BP601

class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, tokens):
        logits = self.model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

trainer = Trainer(Model())
for _ in range(3):
    trainer.step(torch.randint(0, 10, (4, 6)))
""",
    "in a function of its own, over two statements": """
import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)

def features(x):
    h = encoder(x)
    h = h.detach()  # <- BP601
    return h.relu()

def main():
    for _ in range(3):
        x = torch.randn(5, 4)
        loss = head(features(x)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()

main()
""",
    "nothing is left to walk": """
import torch
w = torch.ones(3, requires_grad=True)
loss = (w * 2).detach().sum()  # <- BP601
loss.backward()
""",
    "the exception is caught": """
import torch
w = torch.ones(3, requires_grad=True)
loss = (w * 2).detach().sum()
try:
    loss.backward()
except RuntimeError:
    pass
""",
    "returned beside what is logged": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"out": self.head(h), "features": h.detach()}

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    result = net(torch.randn(5, 4))
    loss = result["out"].pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(result["features"].mean())
""",
    "a dictionary hands the cut value to the loss": """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.head = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        h = self.trunk(x)
        return {"seen": h.mean(), "features": h.detach()}  # <- BP601

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    result = net(torch.randn(5, 4))
    loss = net.head(result["features"]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the generator of a GAN, in a class": """
import torch
from torch import nn

class Gan:
    def __init__(self):
        self.g, self.d = nn.Linear(2, 3), nn.Linear(3, 1)
        self.opt_g = torch.optim.Adam(self.g.parameters())
        self.opt_d = torch.optim.Adam(self.d.parameters())

    def train_d(self, real):
        fake = self.g(torch.randn(6, 2)).detach()
        loss = self.d(fake).mean() - self.d(real).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()

    def train_g(self):
        fake = self.g(torch.randn(6, 2)).detach()  # <- BP601
        loss = -self.d(fake).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()

gan = Gan()
for _ in range(3):
    gan.train_d(torch.randn(6, 3))
    gan.train_g()
""",
    "data over several lines of a chain": """
import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    h = (
        encoder(torch.randn(5, 4))
        .relu()
        .data  # <- BP601
    )
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "what an optimizer never steps on is not trained": """
import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 1)
spare = torch.optim.SGD(encoder.parameters(), lr=0.1)
opt = torch.optim.SGD(head.parameters(), lr=0.1)
for _ in range(3):
    loss = head(encoder(torch.randn(5, 4)).detach()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a detached value that only a metric reads": """
import torch
from torch import nn

encoder, unused, head = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
for _ in range(3):
    h = encoder(torch.randn(5, 4))
    loss = head(h).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(unused(h.detach()).mean())
""",
    "a flagged root hides the cut, which is told as that": """
import torch
from torch import nn

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    out = model(torch.randn(4, 3)).detach()  # <- BP106
    loss = out.pow(2).mean()
    loss.requires_grad = True
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "what was detached for one loss gets its gradient by assignment": """
import torch
trunk, weights = torch.nn.Linear(3, 2), torch.nn.Parameter(torch.ones(2))
opt, other = torch.optim.SGD(trunk.parameters(), lr=0.1), torch.optim.SGD([weights], lr=0.1)
for x in torch.randn(4, 8, 3):
    losses = trunk(x).pow(2).mean(0)
    opt.zero_grad()
    (weights.detach() * losses).sum().backward(retain_graph=True)
    other.zero_grad()
    (weights.grad,) = torch.autograd.grad((weights * losses.detach()).sum(), [weights])
    opt.step()
    other.step()
""",
    "a forward hook hands back what it keeps": HOOKED.format(
        body="""kept["middle"] = output.detach()
    return kept["middle"]  # <- BP601"""
    ),
    "a forward hook that only keeps": HOOKED.format(body="""kept["middle"] = output.detach()"""),
    "a forward hook returns the output with a constant of it": HOOKED.format(
        body="return output + 0.1 * output.detach().abs()"
    ),
    "a lambda gives back what it stores": HOOKED.format(body="return None").replace(
        "register_forward_hook(hook)",
        'register_forward_hook(lambda module, given, output: kept.setdefault("x", output.detach()))  # <- BP601',
    ),
    "a lambda that only stores": HOOKED.format(body="return None").replace(
        "register_forward_hook(hook)",
        "register_forward_hook(lambda module, given, output: kept.update(x=output.detach()))",
    ),
    "a learner begins at detached parameters, read by their path": """
import torch
from torch import nn
torch.manual_seed(0)
meta = nn.Linear(3, 1)
opt = torch.optim.Adam(meta.parameters(), lr=1e-2)
for it in range(5):
    x = torch.randn(8, 3)
    y = torch.randn(8, 1)
    w = meta.weight.clone().detach().requires_grad_(True)  # <- BP601
    inner = (x @ w.t() + meta.bias - y).pow(2).mean()
    (gw,) = torch.autograd.grad(inner, [w], create_graph=True)
    fast_w = w - 0.1 * gw
    outer = (x @ fast_w.t() + meta.bias - y).pow(2).mean()
    opt.zero_grad()
    outer.backward()
    opt.step()
""",
    "a learner begins at the detached weight of a trainer's network": """
import torch
from torch import nn
torch.manual_seed(0)
class Meta:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-2)
    def outer(self, x, y):
        w = self.net.weight.detach().clone().requires_grad_()  # <- BP601
        inner = (x @ w.t() + self.net.bias - y).pow(2).mean()
        (g,) = torch.autograd.grad(inner, [w], create_graph=True)
        fast = w - 0.1 * g
        loss = (x @ fast.t() + self.net.bias - y).pow(2).mean()
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
m = Meta()
for i in range(5):
    m.outer(torch.randn(8, 3), torch.randn(8, 1))
""",
    "a copy learns, and the parameters move towards it": """
import copy
import torch
from torch import nn
torch.manual_seed(0)
meta = nn.Linear(3, 1)
for it in range(4):
    fast = copy.deepcopy(meta)
    opt = torch.optim.SGD(fast.parameters(), lr=0.1)
    for _ in range(3):
        x, y = torch.randn(8, 3), torch.randn(8, 1)
        opt.zero_grad()
        (fast(x) - y).pow(2).mean().backward()
        opt.step()
    with torch.no_grad():
        meta.weight.add_(fast.weight.detach() - meta.weight.detach(), alpha=0.5)
        meta.bias.add_(fast.bias.detach() - meta.bias.detach(), alpha=0.5)
""",
    "an embedding that gets its gradient elsewhere": """
import torch
from torch import nn
torch.manual_seed(0)
emb = nn.Embedding(10, 4)
body = nn.Linear(4, 4)
opt = torch.optim.SGD([*emb.parameters(), *body.parameters()], lr=0.1)
for i in range(4):
    t = torch.randint(0, 10, (6,))
    logits = body(emb(t)) @ emb.weight.detach().t()
    loss = nn.functional.cross_entropy(logits, t)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a divergence of detached statistics, through a dict and an unpacked call": """
import torch
from torch import nn
torch.manual_seed(0)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mu, self.lv, self.d = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(2, 8)
    def forward(self, x):
        h = torch.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        stats = {"mu": mu.detach(), "lv": lv.detach()}  # <- BP601
        return self.d(z), stats
def elbo(x, out, stats):
    kl = -0.5 * (1 + stats["lv"] - stats["mu"] ** 2 - stats["lv"].exp()).sum(1).mean()
    return (out - x).pow(2).sum(1).mean() + kl
m = VAE()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(4):
    x = torch.randn(8, 8)
    loss = elbo(x, *m(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: the statistics of a divergence keep their history": """
import torch
from torch import nn
torch.manual_seed(0)
class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.mu, self.lv, self.d = nn.Linear(8, 16), nn.Linear(16, 2), nn.Linear(16, 2), nn.Linear(2, 8)
    def forward(self, x):
        h = torch.relu(self.e(x))
        mu, lv = self.mu(h), self.lv(h)
        z = mu + torch.randn_like(mu) * torch.exp(0.5 * lv)
        stats = {"mu": mu, "lv": lv}
        return self.d(z), stats
def elbo(x, out, stats):
    kl = -0.5 * (1 + stats["lv"] - stats["mu"] ** 2 - stats["lv"].exp()).sum(1).mean()
    return (out - x).pow(2).sum(1).mean() + kl
m = VAE()
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(4):
    x = torch.randn(8, 8)
    loss = elbo(x, *m(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "features detached in a dict of outputs": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
    def forward(self, x):
        h = torch.relu(self.enc(x))
        return {"logits": self.head(h), "feats": h.detach()}  # <- BP601
class Criterion:
    def __init__(self, w):
        self.w = w
    def __call__(self, batch, **outputs):
        ce = F.cross_entropy(outputs["logits"], batch["y"])
        centre = (outputs["feats"] - outputs["feats"].mean(0)).pow(2).sum(1).mean()
        return ce + self.w * centre
m, crit = Model(), Criterion(0.1)
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(4):
    batch = {"x": torch.randn(6, 8), "y": torch.randint(3, (6,))}
    loss = crit(batch, **m(batch["x"]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: features of a dict of outputs keep their history": """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.head = nn.Linear(8, 16), nn.Linear(16, 3)
    def forward(self, x):
        h = torch.relu(self.enc(x))
        return {"logits": self.head(h), "feats": h}
class Criterion:
    def __init__(self, w):
        self.w = w
    def __call__(self, batch, **outputs):
        ce = F.cross_entropy(outputs["logits"], batch["y"])
        centre = (outputs["feats"] - outputs["feats"].mean(0)).pow(2).sum(1).mean()
        return ce + self.w * centre
m, crit = Model(), Criterion(0.1)
opt = torch.optim.Adam(m.parameters(), 1e-3)
for _ in range(4):
    batch = {"x": torch.randn(6, 8), "y": torch.randint(3, (6,))}
    loss = crit(batch, **m(batch["x"]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: similarities less their greatest": """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
X = torch.randn(60, 6)
Y = (X[:, 0] + X[:, 1] > 0).long() + (X[:, 2] > 1).long()


def supcon(z, y, tau=0.1):
    z = F.normalize(z, dim=1)
    sim = z @ z.t() / tau
    sim = sim - sim.max(1, keepdim=True).values.detach()
    self_mask = torch.eye(len(z), dtype=torch.bool)
    pos = (y[:, None] == y[None]) & ~self_mask
    log_prob = sim - sim.masked_fill(self_mask, float("-inf")).logsumexp(1, keepdim=True)
    return -(log_prob * pos).sum(1).div(pos.sum(1).clamp(min=1)).mean()


encoder = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 16))
projection = nn.Linear(16, 8)
opt = torch.optim.Adam([{"params": encoder.parameters()}, {"params": projection.parameters(), "lr": 3e-3}], lr=1e-3)
for epoch in range(6):
    for idx in torch.randperm(60).split(20):
        loss = supcon(projection(encoder(X[idx])), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print("pretrain", epoch, loss.item())

for p in encoder.parameters():
    p.requires_grad = False
encoder.eval()
clf = nn.Linear(16, 3)
opt = torch.optim.Adam(clf.parameters(), lr=1e-2)
for epoch in range(6):
    loss = F.cross_entropy(clf(encoder(X)), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("linear", loss.item(), (clf(encoder(X)).argmax(1) == Y).float().mean().item())
""",
    "right: an unrolled optimizer, truncated": """
import torch
from torch import nn

torch.manual_seed(0)


class LearnedRule(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(1, 8), nn.Linear(8, 1)

    def forward(self, g, state):
        h, c = self.cell(g.view(-1, 1), state)
        return 0.1 * self.out(h).view(g.shape), (h, c)


rule = LearnedRule()
meta = torch.optim.Adam(rule.parameters(), lr=5e-3)
for episode in range(4):
    W, y = torch.randn(8, 4), torch.randn(8)
    theta = torch.zeros(4, requires_grad=True)
    state = None
    total = 0.0
    for t in range(12):
        loss = (W @ theta - y).pow(2).mean()
        total = total + loss
        (g,) = torch.autograd.grad(loss, theta, retain_graph=True)
        update, state = rule(g.detach(), state)
        theta = theta + update
        if (t + 1) % 6 == 0:
            meta.zero_grad()
            total.backward()
            meta.step()
            theta = theta.detach().requires_grad_()
            state = tuple(s.detach() for s in state)
            total = 0.0
    print(episode, loss.item())
""",
    "one cut value for both players": """
import torch
from torch import nn
G, D = nn.Linear(3, 1), nn.Linear(1, 1)
og, od = torch.optim.SGD(G.parameters(), lr=0.1), torch.optim.SGD(D.parameters(), lr=0.1)
def hinge(real, fake): return (1 - real).relu().mean() + (1 + fake).relu().mean()
for _ in range(4):
    fake = G(torch.randn(8, 3)).detach()  # <- BP601
    od.zero_grad()
    hinge(D(torch.randn(8, 1)), D(fake)).backward()
    od.step()
    og.zero_grad()
    (-D(fake).mean()).backward()
    og.step()
""",
    "a target is detached, and nothing else cuts: no loss trains what made it": """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)
one, other = nn.Linear(4, 3), nn.Linear(4, 3)
opt = torch.optim.SGD([*one.parameters(), *other.parameters()], lr=0.1)
for x in torch.randn(3, 8, 4):
    right = (other(x).argmax(1) == 0).float().mean()
    loss = F.mse_loss(one(x), other(x).detach())  # <- BP601
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(right.item())
""",
    "a straight-through step beside a parameter that was replaced": """
import torch
from torch import nn


class Rounder(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(torch.ones(1))

    def forward(self, x):
        y = x / self.step
        y = y + (y.round() - y).detach()
        return y * self.step


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 6), Rounder(), nn.Linear(6, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
net[1].step = nn.Parameter(torch.full((1,), 0.5))  # <- BP702
for x in torch.randn(4, 8, 4):
    loss = (net(x) - 1).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "the target of a divergence that is added up has a name": """
import torch
import torch.nn.functional as F
from torch import nn

nets = [nn.Linear(6, 3), nn.Linear(6, 3)]
opts = [torch.optim.SGD(net.parameters(), lr=0.05) for net in nets]
for x in torch.randn(4, 16, 6):
    outs = [net(x) for net in nets]
    for i, opt in enumerate(opts):
        loss = F.cross_entropy(outs[i], torch.zeros(16, dtype=torch.long))
        apart = 0.0
        for j in range(2):
            if j != i:
                logs = F.log_softmax(outs[i], 1)
                other = outs[j].detach()
                wanted = F.softmax(other, 1)
                apart += F.kl_div(logs, wanted, reduction="batchmean")
        opt.zero_grad()
        (loss + apart).backward()
        opt.step()
""",
    "the classes are a function's": """
import torch
from torch import nn

def main():
    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.GRU(4, 6, batch_first=True)

        def forward(self, x):
            out, _ = self.rnn(x)
            return out

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head, self.kept = Encoder(), nn.Linear(6, 2), None

        def encode(self, x):
            memory = self.encoder(x)
            self.kept = memory.detach()  # <- BP601
            return self.kept

        def forward(self, x):
            return self.head(self.encode(x))

    net = Tagger()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for x in torch.randn(4, 5, 3, 4):
        opt.zero_grad()
        net(x).pow(2).mean().backward()
        opt.step()

main()
""",
}
