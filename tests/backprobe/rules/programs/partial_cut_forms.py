"""BP601 to BP607 and BP810, of one term of a loss: a second set, in further forms of training."""

_HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
import numpy as np
torch.manual_seed(0)
"""


def _supervised(*lines, pre=""):
    return (
        _HEAD
        + pre
        + """
net = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(4, 16, 5):
    y = x[:, :3].argmax(1)
    logits = net(x)
    ce = F.cross_entropy(logits, y)
    """
        + "\n    ".join(lines)
        + "\n"
    )


_STEP = ("opt.zero_grad()", "loss.backward()", "opt.step()")
PROGRAMS = {
    "weights dict of terms": _supervised(
        "terms = {'ce': ce, 'conf': torch.as_tensor(logits.softmax(1).max(1).values.mean().item())}  # <- BP603",
        "weights = {'ce': 1.0, 'conf': 0.1}",
        "loss = sum(weights[k] * terms[k] for k in terms)",
        *_STEP,
    ),
    "unnamed root": _supervised(
        "reg = logits.detach().square().mean()  # <- BP601",
        "opt.zero_grad()",
        "(ce + 0.1 * reg).backward()",
        "opt.step()",
    ),
    "accumulated over micro batches": _supervised(
        "opt.zero_grad()",
        "for part in x.chunk(2):",
        "    out = net(part)",
        "    with torch.no_grad():  # <- BP602",
        "        smooth = (net(part + 0.1) - net(part)).abs().mean()",
        "    loss = out.square().mean() + smooth",
        "    (loss / 2).backward()",
        "opt.step()",
    ),
    "torch.add of terms": _supervised(
        "acc = (logits.argmax(1) == y).float().mean()  # <- BP606", "loss = torch.add(ce, 1 - acc, alpha=0.5)", *_STEP
    ),
    "loss class with forward": _supervised(
        "loss = crit(logits, y)",
        *_STEP,
        pre="""
class Loss(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
        self.ce = nn.CrossEntropyLoss()
    def sharpness(self, logits):
        p = logits.softmax(1).cpu().detach().numpy()  # <- BP604
        return float((p * np.log(p)).sum(1).mean())
    def forward(self, logits, y):
        return self.ce(logits, y) + self.weight * self.sharpness(logits)
crit = Loss(0.1)
""",
    ),
    "lbfgs closure": _HEAD
    + """
net = nn.Linear(3, 2)
opt = torch.optim.LBFGS(net.parameters(), max_iter=3)
x = torch.randn(10, 3)
for _ in range(3):
    def closure():
        opt.zero_grad()
        out = net(x)
        centred = (out.detach() - 1).abs().mean()  # <- BP601
        loss = out.square().mean() + centred
        loss.backward()
        return loss
    opt.step(closure)
""",
    "autoencoder latent penalty data": _HEAD
    + """
class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 3), nn.Linear(3, 6)
    def forward(self, x):
        self.z = self.enc(x)
        return self.dec(self.z)
model = AE()
opt = torch.optim.Adam(model.parameters())
def step(batch):
    out = model(batch)
    rec = F.mse_loss(out, batch)
    sparse = model.z.data.abs().mean()  # <- BP601
    loss = rec + 1e-3 * sparse
    opt.zero_grad(); loss.backward(); opt.step()
    return loss.item()
for b in torch.randn(4, 8, 6): step(b)
""",
    "triplet mined by numpy numbers": _HEAD
    + """
emb = nn.Linear(6, 4)
opt = torch.optim.SGD(emb.parameters(), lr=0.1)
for x in torch.randn(4, 9, 6):
    e = emb(x)
    pos = (e[:3] - e[3:6]).square().sum(1)
    neg = torch.from_numpy(np.square(e[:3].detach().numpy() - e[6:].detach().numpy()).sum(1))  # <- BP604
    loss = (pos - neg).mean() + 0.1 * e.square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "cycle gan identity under no grad": _HEAD
    + """
g, f = nn.Linear(4, 4), nn.Linear(4, 4)
opt = torch.optim.Adam([*g.parameters(), *f.parameters()])
for a, b in zip(torch.randn(4, 8, 4), torch.randn(4, 8, 4)):
    fake_b = g(a)
    cycle = F.l1_loss(f(fake_b), a)
    with torch.no_grad():  # <- BP602
        ident = F.l1_loss(g(b), b)
    total = cycle + 0.5 * ident
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "scaler and amp": _HEAD
    + """
net = nn.Linear(4, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for x in torch.randn(4, 8, 4):
    out = net(x)
    penalty = out.norm().item()  # <- BP603
    loss = out.square().mean() + 0.1 * penalty
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
""",
    "augassign of several": _supervised(
        "loss = ce",
        "for at in range(3):",
        "    loss += 0.1 * logits[:, at].detach().square().mean()  # <- BP601",
        *_STEP,
    ),
    "rl value loss detached value": _HEAD
    + """
body, pi, v = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 1)
opt = torch.optim.Adam([*body.parameters(), *pi.parameters(), *v.parameters()])
for obs in torch.randn(4, 10, 6):
    h = body(obs).tanh()
    value = v(h).squeeze(-1).detach()  # <- BP601
    dist = torch.distributions.Categorical(logits=pi(h))
    a = dist.sample()
    ret = torch.randn(10)
    loss = -(dist.log_prob(a) * (ret - value.detach())).mean() + (ret - value).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "two optimizers one total": _HEAD
    + """
enc, head = nn.Linear(5, 4), nn.Linear(4, 2)
o1, o2 = torch.optim.SGD(enc.parameters(), 0.1), torch.optim.SGD(head.parameters(), 0.1)
for x in torch.randn(4, 8, 5):
    h = enc(x)
    out = head(h)
    spread = torch.tensor(h.std(0).mean())  # <- BP605
    total = out.square().mean() + (1 - spread).abs()
    o1.zero_grad(); o2.zero_grad()
    total.backward()
    o1.step(); o2.step()
""",
    "hinge on argmax count int mean": _supervised(
        "pred = logits.max(1).indices  # <- BP606", "miss = (pred - y).abs().float().mean()", "loss = ce + miss", *_STEP
    ),
    "round in rate term": _supervised(
        "bits = (logits.detach().round().abs() + 1).log2().mean()  # <- BP601", "loss = ce + 0.01 * bits", *_STEP
    ),
    # look-alikes
    "ok: perplexity shown in tuple": _supervised(
        "ppl = ce.detach().exp()", "loss, shown = ce, (ce.item(), ppl)", *_STEP
    ),
    "ok: constant target entropy": _supervised(
        "t = F.one_hot(y, 3).float() * 0.9 + 0.033",
        "h = -(t * t.log()).sum(1).mean()",
        "loss = -(t * logits.log_softmax(1)).sum(1).mean() - h",
        *_STEP,
    ),
    "ok: label entropy by teacher": _HEAD
    + """
teacher = nn.Linear(5, 3).requires_grad_(False)
net = nn.Linear(5, 3)
opt = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 5):
    t = teacher(x).softmax(1)
    kl = (t * t.log()).sum(1).mean() - (t * net(x).log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    kl.backward()
    opt.step()
""",
    "ok: EMA teacher entropy": _HEAD
    + """
import copy
net = nn.Linear(5, 3)
ema = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 5):
    t = ema(x).softmax(1)
    kl = (t * t.log()).sum(1).mean() - (t * net(x).log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    kl.backward()
    opt.step()
    with torch.no_grad():
        for s, p in zip(ema.parameters(), net.parameters()):
            s.lerp_(p, 0.1)
""",
    "ok: dino centre": _HEAD
    + """
import copy
net = nn.Linear(5, 3)
ema = copy.deepcopy(net).requires_grad_(False)
centre = torch.zeros(3)
opt = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 5):
    t = ((ema(x) - centre) / 0.5).softmax(1).detach()
    loss = -(t * net(x + 0.1).log_softmax(1)).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        centre.mul_(0.9).add_(net(x).mean(0), alpha=0.1)
        for s, p in zip(ema.parameters(), net.parameters()):
            s.lerp_(p, 0.1)
""",
    "ok: reward shaping with kl penalty in reward": _HEAD
    + """
pi, ref = nn.Linear(4, 3), nn.Linear(4, 3).requires_grad_(False)
opt = torch.optim.Adam(pi.parameters())
base = 0.0
for s in torch.randn(4, 8, 4):
    d = torch.distributions.Categorical(logits=pi(s))
    a = d.sample()
    lp = d.log_prob(a)
    with torch.no_grad():
        kl = lp - torch.distributions.Categorical(logits=ref(s)).log_prob(a)
        reward = (a == 0).float() - 0.1 * kl
    base = 0.9 * base + 0.1 * reward.mean().item()
    loss = -(lp * (reward - base)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "ok: gradient norm shown and schedule": _supervised(
        "weight = min(1.0, ce.item())", "aux = logits.square().mean()", "loss = ce + weight * aux", *_STEP
    ),
    "ok: centred contrastive queue": _HEAD
    + """
q = nn.Linear(5, 4)
queue = torch.zeros(0, 4)
opt = torch.optim.SGD(q.parameters(), 0.1)
for x in torch.randn(4, 6, 5):
    z = F.normalize(q(x), dim=1)
    keys = torch.cat([z.detach(), queue])
    loss = F.cross_entropy(z @ keys.t() / 0.2, torch.arange(6))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue = torch.cat([z.detach(), queue])[:12]
""",
    "ok: energy shift": _supervised(
        "e = logits.logsumexp(1)",
        "shift = e.detach().max()",
        "loss = ce + (e - shift).exp().mean().log() + shift",
        *_STEP,
    ),
    "ok: logsumexp by hand": _supervised(
        "top = logits.max(1).values.detach()",
        "lse = (logits - top[:, None]).exp().sum(1).log() + top",
        "loss = (lse - logits.gather(1, y[:, None])[:, 0]).mean()",
        *_STEP,
    ),
    "ok: baseline of detached mean in sum": _supervised(
        "each = F.cross_entropy(logits, y, reduction='none')",
        "loss = (each - each.detach().mean()).mean() + ce",
        *_STEP,
    ),
    "ok: quantile of outputs as margin": _supervised(
        "margin = logits.detach().quantile(0.9)", "loss = ce + (margin - logits).relu().mean()", *_STEP
    ),
    "ok: gan with r1 every other step": _HEAD
    + """
d, g = nn.Linear(3, 1), nn.Linear(2, 3)
od, og = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
for i, real in enumerate(torch.randn(4, 8, 3)):
    real.requires_grad_()
    fake = g(torch.randn(8, 2))
    score = d(real)
    loss_d = F.softplus(-score).mean() + F.softplus(d(fake.detach())).mean()
    r1 = torch.zeros(())
    if i % 2 == 0:
        (gr,) = torch.autograd.grad(score.sum(), real, create_graph=True)
        r1 = gr.square().sum(1).mean()
    loss_d = loss_d + r1
    od.zero_grad(); loss_d.backward(); od.step()
    loss_g = F.softplus(-d(fake)).mean()
    og.zero_grad(); loss_g.backward(); og.step()
""",
    "ok: relativistic": _HEAD
    + """
d, g = nn.Linear(3, 1), nn.Linear(2, 3)
od, og = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
for real in torch.randn(4, 8, 3):
    fake = g(torch.randn(8, 2))
    loss_d = F.softplus(-(d(real) - d(fake.detach()).mean())).mean()
    d.zero_grad(); loss_d.backward(); od.step()
    with torch.no_grad():
        r = d(real)
    loss_g = F.softplus(-(d(fake) - r.mean())).mean() + F.softplus(r - 1).mean()
    g.zero_grad(); loss_g.backward(); og.step()
""",
}

_DISTILLED = (
    _HEAD
    + """
teacher = nn.Linear(5, 3).requires_grad_(False)
net = nn.Linear(5, 3)
opt = torch.optim.Adam(net.parameters())
for x in torch.randn(4, 8, 5):
    out = net(x)
    {lines}
    loss = F.cross_entropy(out, x[:, :3].argmax(1)) + 0.5 * soft
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)


def _distilled(*lines):
    return _DISTILLED.format(lines="\n    ".join(lines))


PROGRAMS |= {
    "a distillation of the teacher with itself": _distilled(
        "wanted = teacher(x).softmax(1)",
        "given = teacher(x).log_softmax(1)  # <- BP810",
        "soft = F.kl_div(given, wanted, reduction='batchmean')",
    ),
    "a reconstruction of the data by the data": _distilled(
        "soft = nn.MSELoss()(x * 1.0, x)  # <- BP810",
    ),
    "a distillation of the student": _distilled(
        "wanted = teacher(x).softmax(1)",
        "soft = F.kl_div(out.log_softmax(1), wanted, reduction='batchmean')",
    ),
    "a constant that is no loss": _distilled(
        "wanted = teacher(x).softmax(1)", "soft = (wanted * wanted.log()).sum(1).mean()"
    ),
}
