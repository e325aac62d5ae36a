# /// correct ascent-on-a-bound
# families = ["loss"]
# resembles = "the objective is maximised by an optimizer that ascends"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class VAE(nn.Module):
    def __init__(self, n=12, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(n, 2 * z), nn.Linear(z, n)

    def elbo(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        log_px = -F.binary_cross_entropy_with_logits(self.dec(z), x, reduction="none").sum(1)
        kl = 0.5 * (logvar.exp() + mu.pow(2) - 1 - logvar).sum(1)
        return (log_px - kl).mean()


torch.manual_seed(38)
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-2, maximize=True)
proto = (torch.rand(4, 12) < 0.5).float()
x = proto[torch.randint(0, 4, (100,))]
for it in range(25):
    bound = vae.elbo(x)
    opt.zero_grad()
    bound.backward()
    opt.step()
print(bound.item())
# /// correct attacked-inputs
# families = ["flags", "accumulation"]
# resembles = "adversarial training: gradients of inputs only, through a model in evaluation mode"
# ///
import torch
import torch.nn as nn


def pgd(model, x, y, eps=0.3, steps=3):
    delta = torch.zeros_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = nn.functional.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + eps / 2 * grad.sign()).clamp(-eps, eps)
    return (x + delta).detach()


torch.manual_seed(11)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(90, 6)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for xb, yb in zip(x.split(30), y.split(30)):
        model.eval()
        adv = pgd(model, xb, yb)
        model.train()
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(adv), yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct binary-weights-straight-through
# families = ["function"]
# resembles = "backward gives the incoming gradient as it is: straight-through sign"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return grad * (w.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().mean()
        return F.linear(x, scale * Sign.apply(self.weight), self.bias)


torch.manual_seed(6)
net = nn.Sequential(BinaryLinear(10, 64), nn.BatchNorm1d(64), nn.Hardtanh(), BinaryLinear(64, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(128, 10)
y = (x.sum(1) > 0).long()
for _ in range(15):
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for m in (net[0], net[3]):
            m.weight.clamp_(-1, 1)
print(loss.item())
# /// correct cleared-at-the-end
# families = ["accumulation"]
# resembles = "zero_grad stands last in the loop, after a remainder was stepped"
# ///
import torch
import torch.nn as nn


def train(model, batches, optimizer, every):
    for i, (x, y) in enumerate(batches, 1):
        window = min(every, len(batches) - (i - 1) // every * every)
        loss = nn.functional.mse_loss(model(x), y)
        (loss / window).backward()
        if i % every == 0 or i == len(batches):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return loss.item()


torch.manual_seed(4)
x = torch.randn(70, 4)
y = x.pow(2).sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    print(epoch, train(model, list(zip(x.split(10), y.split(10))), optimizer, every=3))
# /// correct closure-that-evaluates
# families = ["optimizer"]
# resembles = "LBFGS with a proper closure, whose backward runs many times"
# ///
import torch

torch.manual_seed(17)
knots = torch.nn.Parameter(torch.zeros(9))
x = torch.linspace(0, 8, 200)
y = torch.sin(x) + 0.05 * torch.randn(200)
left = x.long().clamp(max=7)
opt = torch.optim.LBFGS([knots], lr=1, max_iter=10, line_search_fn="strong_wolfe")


def predict():
    frac = x - left
    return knots[left] * (1 - frac) + knots[left + 1] * frac


def closure():
    opt.zero_grad()
    loss = (predict() - y).pow(2).mean() + 1e-3 * knots.diff().pow(2).sum()
    if loss.requires_grad:
        loss.backward()
    return loss


for it in range(3):
    print(it, opt.step(closure).item())
# /// correct codes-by-moving-average
# families = ["optimizer", "graph-break"]
# resembles = "a codebook in buffers is written under no_grad and no optimizer has it"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class EMACodebook(nn.Module):
    def __init__(self, n=16, dim=4, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(n, dim))
        self.register_buffer("count", torch.ones(n))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(1)
        q = self.codes[index]
        if self.training:
            with torch.no_grad():
                hot = F.one_hot(index, len(self.codes)).float()
                self.count.lerp_(hot.sum(0), 1 - self.decay)
                self.total.lerp_(hot.T @ z, 1 - self.decay)
                self.codes.copy_(self.total / self.count.clamp(min=1e-3)[:, None])
        return z + (q - z).detach(), F.mse_loss(z, q)


torch.manual_seed(2)
enc, book, dec = nn.Linear(10, 4), EMACodebook(), nn.Linear(4, 10)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = torch.randn(128, 10)
for _ in range(8):
    q, commit = book(enc(x))
    loss = F.mse_loss(dec(q), x) + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct critic-switched-off-for-the-actor
# families = ["flags"]
# resembles = "requires_grad of the critic goes off and on again"
# ///
import torch
import torch.nn as nn

torch.manual_seed(12)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
oa = torch.optim.Adam(actor.parameters(), lr=1e-3)
oc = torch.optim.Adam(critic.parameters(), lr=1e-3)
for it in range(8):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r = -(a - s[:, :1].tanh()).abs()
    lc = (critic(torch.cat([s, a], 1)) - r).pow(2).mean()
    oc.zero_grad()
    lc.backward()
    oc.step()
    critic.requires_grad_(False)
    la = -critic(torch.cat([s, actor(s)], 1)).mean()
    oa.zero_grad()
    la.backward()
    oa.step()
    critic.requires_grad_(True)
print(lc.item(), la.item())
# /// correct descent-by-hand
# families = ["leaf", "accumulation"]
# resembles = "parameters move in place under no_grad, gradients are set to None"
# ///
import torch

torch.manual_seed(31)
x = torch.randn(100, 2)
y = (x[:, 0] - 2 * x[:, 1] > 0.5).float()
w = torch.zeros(2, requires_grad=True)
b = torch.zeros((), requires_grad=True)
speed = [torch.zeros_like(w), torch.zeros_like(b)]
for step in range(80):
    z = x @ w + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    loss.backward()
    with torch.no_grad():
        for p, v in zip((w, b), speed):
            v.mul_(0.9).add_(p.grad)
            p -= 0.1 * v
            p.grad = None
print(loss.item(), w, b)
# /// correct divergence-of-logs
# families = ["loss"]
# resembles = "kl_div with log_target, both operands log-probabilities, the first the student's"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(26)
teacher = nn.Sequential(nn.Linear(6, 40), nn.ReLU(), nn.Linear(40, 4)).eval()
student = nn.Linear(6, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
T = 3.0
for it in range(15):
    x = torch.randn(64, 6)
    with torch.no_grad():
        goal = F.log_softmax(teacher(x) / T, -1)
    out = student(x)
    soft = F.kl_div(F.log_softmax(out / T, -1), goal, reduction="batchmean", log_target=True) * T * T
    hard = F.cross_entropy(out, goal.argmax(-1))
    loss = 0.8 * soft + 0.2 * hard
    opt.zero_grad()
    loss.backward()
    opt.step()
print(soft.item(), hard.item())
# /// correct features-by-a-hook
# families = ["hook", "retention"]
# resembles = "a forward hook keeps the last output with its graph, which a loss of features uses"
# ///
import torch
import torch.nn as nn


class Tap:
    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.value = output

    def close(self):
        self.handle.remove()
        self.value = None


torch.manual_seed(32)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval().requires_grad_(False)
student = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
taps = Tap(teacher[1]), Tap(student[1])
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for it in range(10):
    x = torch.randn(48, 8)
    with torch.no_grad():
        goal = teacher(x).softmax(1)
    loss = nn.functional.cross_entropy(student(x), goal) + (taps[1].value - taps[0].value).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
for tap in taps:
    tap.close()
print(loss.item())
# /// correct first-order-on-purpose
# families = ["higher-order"]
# resembles = "MAML's inner gradients have no graph: first order is what is asked for, and gradients are handed to the meta-parameters"
# ///
import copy

import torch
import torch.nn as nn


def task(n=20):
    a, b = torch.rand(2) * 4
    x = torch.rand(2 * n, 1) * 6 - 3
    y = a * torch.sin(x + b)
    return (x[:n], y[:n]), (x[n:], y[n:])


torch.manual_seed(8)
model = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1))
meta = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(6):
    meta.zero_grad()
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    for _ in range(4):
        fast = copy.deepcopy(model)
        inner = torch.optim.SGD(fast.parameters(), lr=0.01)
        (x, y), (qx, qy) = task()
        for _ in range(3):
            inner.zero_grad()
            nn.functional.mse_loss(fast(x), y).backward()
            inner.step()
        inner.zero_grad()
        query = nn.functional.mse_loss(fast(qx), qy)
        query.backward()
        for p, f in zip(model.parameters(), fast.parameters()):
            p.grad += f.grad / 4
    meta.step()
    print(it, query.item())
# /// correct grad-mode-by-phase
# families = ["flags", "mode"]
# resembles = "set_grad_enabled and train(...) by phase, restored"
# ///
import torch
import torch.nn as nn


def run(model, data, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total = 0.0
    with torch.set_grad_enabled(training):
        for x, y in data:
            loss = nn.functional.cross_entropy(model(x), y)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(x)
    return total


torch.manual_seed(19)
x = torch.randn(100, 4)
y = (x[:, 0] > x[:, 1]).long()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
train, val = [(x[i:i + 20], y[i:i + 20]) for i in range(0, 80, 20)], [(x[80:], y[80:])]
best = float("inf")
for epoch in range(5):
    run(model, train, opt)
    score = run(model, val)
    if score < best:
        best, kept = score, {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(kept)
print(best, run(model, val))
# /// correct gradients-per-example
# families = ["accumulation", "graph-break"]
# resembles = "torch.func gives gradients per example, which are clipped and written to .grad"
# ///
import torch
import torch.nn as nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(39)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.2)


def loss_of(params, x, y):
    return nn.functional.cross_entropy(functional_call(model, params, (x[None],)), y[None])


per_example = vmap(grad(loss_of), in_dims=(None, 0, 0))
x = torch.randn(60, 5)
y = x[:, :3].argmax(1)
bound, noise = 1.0, 0.1
for epoch in range(6):
    for xb, yb in zip(x.split(20), y.split(20)):
        params = {k: p.detach() for k, p in model.named_parameters()}
        g = per_example(params, xb, yb)
        norm = torch.stack([v.flatten(1).norm(dim=1) for v in g.values()]).norm(dim=0)
        shrink = (bound / norm).clamp(max=1)
        for name, p in model.named_parameters():
            total = torch.einsum("n,n...->...", shrink, g[name])
            p.grad = (total + noise * bound * torch.randn_like(p)) / len(xb)
        opt.step()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
# /// correct gradients-put-together-by-hand
# families = ["accumulation", "optimizer"]
# resembles = "p.grad is assigned: projected gradients of several tasks"
# ///
import torch
import torch.nn as nn

torch.manual_seed(30)
shared = nn.Linear(5, 20)
heads = nn.ModuleList([nn.Linear(20, 1), nn.Linear(20, 1)])
params = list(shared.parameters())
opt = torch.optim.SGD([*params, *heads.parameters()], lr=0.05)


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


for it in range(12):
    x = torch.randn(40, 5)
    h = shared(x).tanh()
    losses = [(heads[0](h) - x[:, :1]).pow(2).mean(), (heads[1](h) + x[:, :1].abs()).pow(2).mean()]
    g = [flat(torch.autograd.grad(l, params, retain_graph=True)) for l in losses]
    opt.zero_grad()
    sum(losses).backward()
    a, b = g
    dot = a @ b
    if dot < 0:
        a, b = a - dot / g[1].pow(2).sum() * g[1], b - dot / g[0].pow(2).sum() * g[0]
    merged, at = a + b, 0
    for p in params:
        p.grad = merged[at:at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
print([l.item() for l in losses])
# /// correct group-relative-policy
# families = ["loss", "graph-break"]
# resembles = "exp(logp - logp.detach()) is 1 but has a gradient"
# ///
import torch
import torch.nn as nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3)
group = 8
for it in range(6):
    prompts = torch.randn(10, 6).repeat_interleave(group, 0)
    dist = torch.distributions.Categorical(logits=policy(prompts))
    answers = dist.sample()
    reward = (answers == prompts[:, :5].argmax(1)).float().view(-1, group)
    advantage = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).flatten()
    logp = dist.log_prob(answers)
    ratio = torch.exp(logp - logp.detach())
    loss = -(ratio * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(it, reward.mean().item())
# /// correct groups-of-decay
# families = ["optimizer"]
# resembles = "parameters are split into two groups by dimension, all of them once"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 0.1
    betas: tuple = (0.9, 0.95)


def configure(model, c):
    params = [p for p in model.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in params if p.dim() >= 2], "weight_decay": c.weight_decay},
        {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0},
    ]
    assert sum(len(g["params"]) for g in groups) == len(params)
    return torch.optim.AdamW(groups, lr=c.lr, betas=c.betas)


torch.manual_seed(35)
model = nn.Sequential(nn.Embedding(30, 16), nn.Flatten(), nn.LayerNorm(64), nn.Linear(64, 5))
opt = configure(model, OptimConfig())
for it in range(10):
    ids = torch.randint(0, 30, (32, 4))
    loss = nn.functional.cross_entropy(model(ids), ids.sum(1) % 5)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
print(loss.item())
# /// correct hooks-registered-once
# families = ["hook"]
# resembles = "gradient hooks that scale and clip, registered once"
# ///
import torch
import torch.nn as nn


def slow_down(module, factor):
    return [p.register_hook(lambda g: g * factor) for p in module.parameters()]


torch.manual_seed(33)
embed, rnn, out = nn.Embedding(15, 10), nn.RNN(10, 20, batch_first=True), nn.Linear(20, 15)
slow_down(embed, 0.1)
for p in rnn.parameters():
    p.register_hook(lambda g: g.clamp(-0.5, 0.5))
params = [p for m in (embed, rnn, out) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
for it in range(10):
    ids = (torch.randint(0, 15, (12, 1)) + 2 * torch.arange(9)) % 15
    logits = out(rnn(embed(ids[:, :-1]))[0])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct in-place-where-allowed
# families = ["in-place"]
# resembles = "in-place operations on values that no backward needs"
# ///
import torch
import torch.nn as nn


class Mixer(nn.Module):
    def __init__(self, ch=8):
        super().__init__()
        self.a = nn.Conv2d(1, ch, 3, padding=1)
        self.b = nn.Conv2d(ch, ch, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(ch, 3)

    def forward(self, x):
        h = self.act(self.a(x))
        r = self.b(h)
        r += h
        r = self.act(r)
        return self.head(r.mean((2, 3)))


torch.manual_seed(21)
net = Mixer()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for it in range(5):
    x = torch.randn(12, 1, 8, 8)
    keep = torch.rand_like(x) < 0.9
    x[~keep] = 0
    logits = net(x)
    logits[:, 2] -= 1
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 3, (12,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct interpolation-of-weights
# families = ["optimizer", "leaf"]
# resembles = "Reptile: meta-parameters move under no_grad without an optimizer"
# ///
import copy

import torch
import torch.nn as nn

torch.manual_seed(9)
slow = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
for outer in range(10):
    fast = copy.deepcopy(slow)
    opt = torch.optim.Adam(fast.parameters(), lr=1e-2)
    w = torch.randn(2, 1)
    for _ in range(5):
        x = torch.randn(30, 2)
        loss = (fast(x) - torch.sin(x @ w)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        for s, f in zip(slow.parameters(), fast.parameters()):
            s.lerp_(f, 0.3)
    print(outer, loss.item())
# /// correct layers-thawed-into-the-optimizer
# families = ["optimizer", "flags"]
# resembles = "unfrozen layers come into the optimizer by add_param_group"
# ///
import torch
import torch.nn as nn

torch.manual_seed(36)
layers = nn.ModuleList([nn.Linear(9, 9) for _ in range(3)])
head = nn.Linear(9, 2)
layers.requires_grad_(False)
opt = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
x = torch.randn(80, 9)
y = (x.prod(1) > 0).long()


def forward(x):
    for layer in layers:
        x = x + layer(x).relu()
    return head(x)


frozen = list(layers)
for epoch in range(6):
    if epoch and epoch % 2 == 0:
        layer = frozen.pop()
        layer.requires_grad_(True)
        opt.add_param_group({"params": layer.parameters(), "lr": 0.01})
    for rows in torch.randperm(80).split(20):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(forward(x[rows]), y[rows])
        loss.backward()
        opt.step()
    print(epoch, len(opt.param_groups), loss.item())
# /// correct loaded-but-for-the-head
# families = ["loading"]
# resembles = "strict=False with a look at what is missing"
# ///
import io

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 20), nn.ReLU())
        self.head = nn.Linear(20, classes)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(34)
file = io.BytesIO()
torch.save({"model": Net(10).state_dict()}, file)
file.seek(0)
state = torch.load(file)["model"]
state = {k: v for k, v in state.items() if not k.startswith("head.")}
net = Net(3)
missing, unexpected = net.load_state_dict(state, strict=False)
assert set(missing) == {"head.weight", "head.bias"} and not unexpected
opt = torch.optim.AdamW([{"params": net.body.parameters(), "lr": 1e-4}, {"params": net.head.parameters()}], lr=1e-2)
x = torch.randn(60, 7)
y = x[:, :3].argmax(1)
for _ in range(10):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct losses-summed-over-time
# families = ["retention"]
# resembles = "a total grows in a loop and is walked back once, floats are kept for the log"
# ///
import torch
import torch.nn as nn

torch.manual_seed(20)
cell = nn.GRUCell(4, 16)
heads = nn.ModuleList(nn.Linear(16, 1) for _ in range(3))
opt = torch.optim.Adam([*cell.parameters(), *heads.parameters()], lr=5e-3)
log, running = [], 0.0
for it in range(12):
    x = torch.randn(20, 6, 4)
    h = torch.zeros(20, 16)
    total = 0
    for t in range(6):
        h = cell(x[:, t], h)
        goal = x[:, : t + 1].mean((1, 2))
        for head in heads:
            total = total + nn.functional.mse_loss(head(h).squeeze(1), goal)
    opt.zero_grad()
    total.backward()
    opt.step()
    running = 0.9 * running + 0.1 * total.item()
    log.append(total.detach())
print(running, torch.stack(log).mean().item())
# /// correct masked-attention-with-infinity
# families = ["numerics", "loss"]
# resembles = "-inf in logits, with one allowed place at least in each row; True means allowed in this function"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attend(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, keep):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        causal = torch.tril(torch.ones(n, n, dtype=torch.bool))
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=causal & keep[:, None, None, :])
        return self.out(h.transpose(1, 2).reshape(b, n, d))


torch.manual_seed(25)
embed, layer, read = nn.Embedding(12, 16), Attend(), nn.Linear(16, 12)
params = [p for m in (embed, layer, read) for p in m.parameters()]
opt = torch.optim.AdamW(params, lr=3e-3)
for it in range(10):
    ids = torch.randint(1, 12, (8, 10))
    length = torch.randint(4, 11, (8, 1))
    keep = torch.arange(10) < length
    logits = read(layer(embed(ids), keep))
    target = ids.roll(-1, 1).masked_fill(torch.arange(10) >= length - 1, -100)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct one-block-many-times
# families = ["identity"]
# resembles = "a recurrent-depth network uses one block several times on purpose"
# ///
import torch
import torch.nn as nn


class Universal(nn.Module):
    """The same block at each depth, told apart by a depth embedding."""

    def __init__(self, dim=12, depth=4):
        super().__init__()
        self.block = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.depth = nn.Embedding(depth, dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        for d in self.depth.weight:
            x = x + self.block(x + d)
        return self.out(x)


torch.manual_seed(15)
net = Universal()
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
x = torch.randn(64, 12)
y = x.pow(2).mean(1, keepdim=True)
for _ in range(10):
    loss = (net(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct one-cycle-per-batch
# families = ["optimizer"]
# resembles = "a scheduler that is meant to step with each batch"
# ///
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(18)
x = torch.randn(160, 5)
y = x.abs().sum(1, keepdim=True)
batches = list(zip(x.split(16), y.split(16)))
epochs = 4
model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
sched = OneCycleLR(opt, max_lr=0.05, epochs=epochs, steps_per_epoch=len(batches))
for epoch in range(epochs):
    for xb, yb in batches:
        loss = nn.functional.mse_loss(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    print(epoch, loss.item(), sched.get_last_lr()[0])
# /// correct optimizer-of-each-phase
# families = ["optimizer"]
# resembles = "a second optimizer is made for the second phase, after unfreezing"
# ///
import torch
import torch.nn as nn

torch.manual_seed(16)
body = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
head = nn.Linear(24, 2)
x = torch.randn(120, 8)
y = (x[:, 0] + x[:, 1] > 0).long()


def phase(lr, epochs):
    model = nn.Sequential(body, head)
    opt = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    for _ in range(epochs):
        for rows in torch.randperm(120).split(40):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            loss.backward()
            opt.step()
    return loss.item()


body.requires_grad_(False)
print(phase(1e-2, 3))
body.requires_grad_(True)
print(phase(1e-3, 3))
# /// correct penalised-critic
# families = ["higher-order", "loss"]
# resembles = "gradient penalty with create_graph; losses are negative, and the generator's backward leaves gradients in the critic that are cleared"
# ///
import torch
import torch.nn as nn

torch.manual_seed(10)
critic = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1))
gen = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
oc = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
og = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.9))


def penalty(a, b):
    t = torch.rand(len(a), 1)
    m = torch.lerp(a, b, t).requires_grad_()
    g = torch.autograd.grad(critic(m).sum(), m, create_graph=True)[0]
    return ((g.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()


for it in range(10):
    real = torch.randn(64, 2) * 0.2 + 1
    with torch.no_grad():
        fake = gen(torch.randn(64, 3))
    oc.zero_grad()
    lc = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
    lc.backward()
    oc.step()
    if it % 3 == 2:
        og.zero_grad()
        lg = -critic(gen(torch.randn(64, 3))).mean()
        lg.backward()
        og.step()
print(lc.item(), lg.item())
# /// correct reversal-layer
# families = ["function", "loss"]
# resembles = "a Function's backward gives the negative gradient: domain-adversarial training"
# ///
import torch
import torch.nn as nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


torch.manual_seed(5)
features, label, domain = nn.Linear(8, 16), nn.Linear(16, 3), nn.Linear(16, 2)
opt = torch.optim.SGD([p for m in (features, label, domain) for p in m.parameters()], lr=0.05, momentum=0.9)
for step in range(10):
    source, target = torch.randn(32, 8), torch.randn(32, 8) + 0.5
    y = source[:, :3].argmax(1)
    h = features(torch.cat([source, target])).relu()
    d = torch.cat([torch.zeros(32), torch.ones(32)]).long()
    strength = 2 / (1 + 2.718 ** (-step)) - 1
    loss = nn.functional.cross_entropy(label(h[:32]), y) + nn.functional.cross_entropy(domain(Reverse.apply(h, strength)), d)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct router-with-balance-term
# families = ["graph-break"]
# resembles = "an expert is picked by argmax, counts have no gradient, and the gate's probability is multiplied in"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        p = self.gate(x).softmax(-1)
        top, which = p.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            rows = (which == i).nonzero().squeeze(1)
            out = out.index_add(0, rows, top[rows, None] * expert(x[rows]))
        share = F.one_hot(which, p.shape[1]).float().mean(0)
        return x + out, p.shape[1] * (share * p.mean(0)).sum()


torch.manual_seed(1)
layer, head = Switch(), nn.Linear(8, 3)
opt = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-3)
x = torch.randn(100, 8)
y = x[:, :3].argmax(1)
for _ in range(5):
    h, balance = layer(x)
    loss = F.cross_entropy(head(h), y) + 0.01 * balance
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), balance.item())
# /// correct samples-of-dropout
# families = ["mode"]
# resembles = "Monte-Carlo dropout: dropout is on in evaluation on purpose"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bayesish(nn.Module):
    def __init__(self, p=0.2):
        super().__init__()
        self.a, self.b, self.p = nn.Linear(1, 64), nn.Linear(64, 1), p

    def forward(self, x, sample=False):
        h = torch.tanh(self.a(x))
        return self.b(F.dropout(h, self.p, training=self.training or sample))


torch.manual_seed(22)
net = Bayesish()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.rand(80, 1) * 4 - 2
y = x.sin() + 0.1 * torch.randn(80, 1)
for _ in range(40):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    draws = torch.stack([net(x, sample=True) for _ in range(30)])
    point = net(x)
print(loss.item(), draws.std(0).mean().item(), F.mse_loss(point, y).item())
# /// correct scaled-then-clipped
# families = ["optimizer", "numerics"]
# resembles = "GradScaler with unscale_ before clipping, loss in float32"
# ///
import torch
import torch.nn as nn

torch.manual_seed(37)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
x = torch.randn(96, 8)
y = x.norm(dim=1, keepdim=True)
for epoch in range(5):
    for xb, yb in zip(x.split(32), y.split(32)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = net(xb)
        loss = nn.functional.mse_loss(out.float(), yb)
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
# /// correct softmax-over-nodes
# families = ["shape"]
# resembles = "softmax over the first dimension: attention pooling over the nodes of each graph"
# ///
import torch
import torch.nn as nn


class Pool(nn.Module):
    def __init__(self, n_in=5, dim=12):
        super().__init__()
        self.lift, self.gate, self.out = nn.Linear(n_in, dim), nn.Linear(dim, 1), nn.Linear(dim, 1)

    def forward(self, adj, x):
        h = torch.relu(self.lift(adj @ x) + self.lift(x))
        weight = self.gate(h).softmax(dim=0)
        return self.out((weight * h).sum(0))


torch.manual_seed(28)
graphs = []
for _ in range(24):
    n = int(torch.randint(4, 9, ()))
    adj = (torch.rand(n, n) < 0.4).float().triu(1)
    adj = adj + adj.T
    graphs.append((adj, torch.randn(n, 5), adj.sum().view(1) / n))
net = Pool()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(4):
    for i in range(0, 24, 8):
        opt.zero_grad()
        for adj, x, y in graphs[i:i + 8]:
            loss = (net(adj, x) - y).pow(2).mean() / 8
            loss.backward()
        opt.step()
    print(epoch, 8 * loss.item())
# /// correct sum-over-tokens-accumulated
# families = ["accumulation"]
# resembles = "backward of summed losses without a division in the loop: the count of all tokens is divided by later"
# ///
import torch
import torch.nn as nn

torch.manual_seed(3)
model = nn.Sequential(nn.Embedding(20, 12, padding_idx=0), nn.Linear(12, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
ids = torch.randint(1, 20, (40, 9))
for row, n in zip(ids, torch.randint(3, 9, (40,))):
    row[int(n):] = 0
for epoch in range(3):
    for window in torch.randperm(40).split(20):
        tokens = (ids[window][:, 1:] != 0).sum()
        optimizer.zero_grad()
        for micro in window.split(5):
            logits = model(ids[micro][:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[micro][:, 1:].flatten(), ignore_index=0, reduction="sum")
            loss.backward()
        for p in model.parameters():
            p.grad /= tokens
        optimizer.step()
    print(epoch, loss.item())
# /// correct target-by-soft-update
# families = ["identity"]
# resembles = "a deep copy follows by lerp_"
# ///
import copy

import torch
import torch.nn as nn


class DoubleDQN:
    def __init__(self, net, tau=0.05, gamma=0.97):
        self.net, self.tau, self.gamma = net, tau, gamma
        self.target = copy.deepcopy(net).requires_grad_(False)
        self.opt = torch.optim.Adam(net.parameters(), lr=1e-3)

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = self.net(s2).argmax(1, keepdim=True)
            y = r + self.gamma * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        loss = nn.functional.huber_loss(self.net(s).gather(1, a[:, None]).squeeze(1), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.parameters()), list(self.net.parameters()), self.tau)
        return loss.item()


torch.manual_seed(13)
agent = DoubleDQN(nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3)))
for it in range(20):
    s, s2 = torch.randn(32, 4), torch.randn(32, 4)
    a, done = torch.randint(0, 3, (32,)), (torch.rand(32) < 0.1).float()
    value = agent.learn(s, a, s.gather(1, a[:, None]).squeeze(1), s2, done)
print(value)
# /// correct tied-head
# families = ["identity"]
# resembles = "one weight has two names on purpose"
# ///
import torch
import torch.nn as nn


class TiedLM(nn.Module):
    def __init__(self, vocab=25, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.1)

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


torch.manual_seed(14)
model = TiedLM()
assert len(list(model.parameters())) == 5
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(10):
    ids = (torch.randint(0, 25, (16, 1)) + torch.arange(9)) % 25
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct time-first
# families = ["shape"]
# resembles = "attention without batch_first, over inputs that have time first"
# ///
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.inp = nn.Linear(3, dim)
        self.attn = nn.MultiheadAttention(dim, 3)
        self.out = nn.Linear(dim, 2)

    def forward(self, x):
        h = self.inp(x.transpose(0, 1))
        h = h + self.attn(h, h, h, need_weights=False)[0]
        return self.out(h.mean(0))


torch.manual_seed(27)
net = Encoder()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
x = torch.randn(50, 8, 3)
y = (x[..., 0].amax(1) > 1.3).long()
for _ in range(10):
    loss = nn.functional.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
assert torch.allclose(net(x)[:2], net(x[:2]), atol=1e-5)
print(loss.item())
# /// correct train-overridden-for-norms
# families = ["mode", "flags"]
# resembles = "a frozen backbone stays in evaluation mode as train() is overridden"
# ///
import torch
import torch.nn as nn


class FrozenBackbone(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone.requires_grad_(False), head
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


torch.manual_seed(23)
backbone = nn.Sequential(nn.Linear(7, 20), nn.BatchNorm1d(20), nn.ReLU())
model = FrozenBackbone(backbone, nn.Sequential(nn.Dropout(0.1), nn.Linear(20, 4)))
opt = torch.optim.AdamW(model.head.parameters(), lr=1e-2)
x = torch.randn(60, 7) + 1
y = torch.randint(0, 4, (60,))
for epoch in range(5):
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), backbone[1].running_mean.abs().max().item())
# /// correct truncated-backprop
# families = ["retention"]
# resembles = "a state is carried over chunks, detached"
# ///
import torch
import torch.nn as nn


def detach(state):
    return tuple(s.detach() for s in state)


torch.manual_seed(7)
cell, read = nn.LSTMCell(3, 20), nn.Linear(20, 3)
opt = torch.optim.RMSprop([*cell.parameters(), *read.parameters()], lr=2e-3)
series = torch.cumsum(torch.randn(101, 8, 3) * 0.1, 0)
for epoch in range(2):
    state = (torch.zeros(8, 20), torch.zeros(8, 20))
    for start in range(0, 100, 10):
        state = detach(state)
        loss = 0.0
        for t in range(start, start + 10):
            state = cell(series[t], state)
            loss = loss + nn.functional.mse_loss(read(state[0]), series[t + 1])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item() / 10)
# /// correct two-losses-one-trunk
# families = ["retention", "accumulation"]
# resembles = "retain_graph=True for the first of two losses of one graph; both are walked back before any step"
# ///
import torch
import torch.nn as nn

torch.manual_seed(29)
trunk = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
policy, value = nn.Linear(24, 3), nn.Linear(24, 1)
opt_p = torch.optim.Adam([*trunk.parameters(), *policy.parameters()], lr=1e-3)
opt_v = torch.optim.Adam(value.parameters(), lr=1e-2)
for it in range(10):
    s = torch.randn(64, 6)
    h = trunk(s)
    dist = torch.distributions.Categorical(logits=policy(h))
    a = dist.sample()
    r = s.gather(1, a[:, None]).squeeze(1)
    v = value(h).squeeze(1)
    loss_p = -(dist.log_prob(a) * (r - v.detach())).mean() - 0.01 * dist.entropy().mean()
    loss_v = 0.5 * (v - r).pow(2).mean()
    opt_p.zero_grad()
    opt_v.zero_grad()
    loss_p.backward(retain_graph=True)
    loss_v.backward()
    opt_p.step()
    opt_v.step()
print(loss_p.item(), loss_v.item())
# /// correct where-of-safe-operands
# families = ["numerics"]
# resembles = "where with both branches finite: the operand was made safe first"
# ///
import torch
import torch.nn as nn


def safe_norm(v, eps=1e-12):
    sq = v.pow(2).sum(-1)
    tiny = sq < eps
    return torch.where(tiny, 0.0, torch.where(tiny, 1.0, sq).sqrt())


def sinc(r):
    small = r.abs() < 1e-3
    safe = torch.where(small, 1.0, r)
    return torch.where(small, 1 - r ** 2 / 6, safe.sin() / safe)


torch.manual_seed(24)
place = nn.Parameter(torch.randn(10, 2))
with torch.no_grad():
    place[3] = place[4]
charge = nn.Linear(1, 1)
opt = torch.optim.Adam([place, *charge.parameters()], lr=1e-2)
for it in range(10):
    d = safe_norm(place[:, None] - place[None])
    loss = (charge(sinc(d)[..., None]).squeeze(-1) - 0.3).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
assert place.isfinite().all()
print(loss.item())
