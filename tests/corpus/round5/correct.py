# /// correct accumulation-that-steps-the-remainder
# families = ["accumulation", "optimizer"]
# resembles = "gradients left over several batches, clipped and scheduled once per step, the rest stepped at the end"
# ///
import torch
from torch import nn

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(10, 20), nn.GELU(), nn.Linear(20, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
batches = [(torch.randn(8, 10), torch.randint(0, 3, (8,))) for _ in range(10)]
accumulate = 4
windows = [batches[i:i + accumulate] for i in range(0, len(batches), accumulate)]
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2 * len(windows))
for epoch in range(2):
    for window in windows:
        samples = sum(len(x) for x, _ in window)
        for x, y in window:
            loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / samples
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(epoch, loss.item(), scheduler.get_last_lr())
# /// correct adapters-trained-and-merged
# families = ["flags", "scale", "optimizer"]
# resembles = "one factor is zero at first, the base is frozen, and in the end the product is added in place"
# ///
import torch
from torch import nn

torch.manual_seed(47)


class Lora(nn.Module):
    def __init__(self, base, r=3, alpha=6):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, base.in_features) / base.in_features ** 0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))
        self.scale, self.merged = alpha / r, False

    def forward(self, x):
        out = self.base(x)
        return out if self.merged else out + self.scale * (x @ self.a.T @ self.b.T)

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.scale * self.b @ self.a
        self.merged = True


net = nn.Sequential(Lora(nn.Linear(9, 32)), nn.Tanh(), Lora(nn.Linear(32, 3)))
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=5e-3)
for step in range(12):
    x = torch.randn(32, 9)
    loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    before = net(x)
    for layer in (net[0], net[2]):
        layer.merge()
    print(loss.item(), (net(x) - before).abs().max().item())
# /// correct adapters-with-new-checkpoint
# families = ["flags"]
# resembles = "frozen embeddings and blocks under a checkpoint that is not reentrant"
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(19)


class Block(nn.Module):
    def __init__(self, dim, r=2):
        super().__init__()
        self.base = nn.Linear(dim, dim).requires_grad_(False)
        self.down, self.up = nn.Linear(dim, r, bias=False), nn.Linear(r, dim, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return x + torch.tanh(self.base(x) + self.up(self.down(x)))


embed = nn.Embedding(20, 12).requires_grad_(False)
blocks, head = nn.ModuleList(Block(12) for _ in range(2)), nn.Linear(12, 2)
params = [p for p in [*blocks.parameters(), *head.parameters()] if p.requires_grad]
optimizer = torch.optim.AdamW(params, lr=5e-3)
ids, y = torch.randint(0, 20, (16, 6)), torch.randint(0, 2, (16,))
for step in range(8):
    h = embed(ids)
    for block in blocks:
        h = checkpoint(block, h, use_reentrant=False)
    loss = nn.functional.cross_entropy(head(h.mean(1)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct adversarial-examples
# families = ["accumulation", "leaf"]
# resembles = "gradients of the input that leave some in the weights, which are cleared before the step"
# ///
import torch
from torch import nn

torch.manual_seed(32)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def attack(x, y, eps=0.1, steps=3):
    adv = x + torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        adv = adv.detach().requires_grad_(True)
        nn.functional.cross_entropy(model(adv), y).backward()
        adv = x + (adv + 0.04 * adv.grad.sign() - x).clamp(-eps, eps)
    return adv.detach()


for step in range(8):
    x = torch.randn(24, 12)
    y = x[:, :4].argmax(1)
    adv = attack(x, y)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(adv), y)
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct average-with-buffers
# families = ["identity", "mode"]
# resembles = "parameters are averaged, buffers copied, and the average evaluated"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(10)


class Ema:
    def __init__(self, model, decay=0.95):
        self.module, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for e, p in zip(self.module.parameters(), model.parameters()):
            e.mul_(self.decay).add_(p, alpha=1 - self.decay)
        for e, b in zip(self.module.buffers(), model.buffers()):
            e.copy_(b)


model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
ema, optimizer = Ema(model), torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.randn(128, 6)
y = (x.sum(1) > 0).long()
for epoch in range(4):
    model.train()
    for idx in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(model)
    with torch.no_grad():
        print(epoch, (ema.module(x[96:]).argmax(1) == y[96:]).float().mean().item())
# /// correct binarised-with-clipped-gradient
# families = ["function", "scale"]
# resembles = "a sign whose backward passes the gradient within a range only"
# ///
import torch
from torch import nn


class BinarySign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * (x.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, BinarySign.apply(self.weight), self.bias)


torch.manual_seed(18)
net = nn.Sequential(BinaryLinear(8, 32), nn.BatchNorm1d(32), nn.Hardtanh(), BinaryLinear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(20):
    x = torch.randn(48, 8)
    loss = nn.functional.cross_entropy(net(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for m in net:
            if isinstance(m, BinaryLinear):
                m.weight.clamp_(-1, 1)
print(loss.item())
# /// correct byol-with-stop-gradient
# families = ["graph-break", "identity"]
# resembles = "targets of a slow copy are detached; the copy has no gradient"
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
online = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad = False
optimizer = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


def distance(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=1).mean()


for step in range(10):
    x = torch.randn(32, 16)
    a, b = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        za, zb = target(a), target(b)
    loss = distance(predictor(online(a)), zb) + distance(predictor(online(b)), za)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for t, o in zip(target.parameters(), online.parameters()):
            t.mul_(0.99).add_(o, alpha=0.01)
    print(step, loss.item())
# /// correct clipped-policy-epochs
# families = ["retention", "graph-break"]
# resembles = "old log-probabilities and advantages are constants over several epochs"
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(38)
actor, critic = nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 2)), nn.Sequential(nn.Linear(4, 24), nn.Tanh(), nn.Linear(24, 1))
log_std = nn.Parameter(torch.full((2,), -0.5))
params = [*actor.parameters(), *critic.parameters(), log_std]
optimizer = torch.optim.Adam(params, lr=2e-3)
for iteration in range(4):
    with torch.no_grad():
        obs = torch.randn(64, 4)
        dist = Normal(actor(obs), log_std.exp())
        act = dist.sample()
        old = dist.log_prob(act).sum(1)
        ret = -(act - obs[:, :2]).square().sum(1)
        adv = ret - critic(obs).squeeze(1)
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
    for epoch in range(3):
        for idx in torch.randperm(64).split(32):
            dist = Normal(actor(obs[idx]), log_std.exp())
            ratio = (dist.log_prob(act[idx]).sum(1) - old[idx]).exp()
            surrogate = torch.min(ratio * adv[idx], ratio.clamp(0.8, 1.2) * adv[idx])
            value_loss = (critic(obs[idx]).squeeze(1) - ret[idx]).square().mean()
            loss = -surrogate.mean() + 0.5 * value_loss - 0.001 * dist.entropy().sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
    print(iteration, ret.mean().item())
# /// correct codebook-by-moving-average
# families = ["graph-break", "identity", "in-place"]
# resembles = "codes are buffers without gradient, moved by averages of what chose them"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)


class EmaQuantizer(nn.Module):
    def __init__(self, k, dim, decay=0.9):
        super().__init__()
        self.decay = decay
        self.register_buffer("codes", torch.randn(k, dim))
        self.register_buffer("count", torch.ones(k))
        self.register_buffer("total", self.codes.clone())

    def forward(self, z):
        idx = torch.cdist(z.detach(), self.codes).argmin(1)
        q = self.codes[idx]
        if self.training:
            with torch.no_grad():
                one = F.one_hot(idx, len(self.codes)).float()
                self.count.mul_(self.decay).add_(one.sum(0), alpha=1 - self.decay)
                self.total.mul_(self.decay).add_(one.T @ z, alpha=1 - self.decay)
                self.codes.copy_(self.total / self.count.clamp(min=1e-3)[:, None])
        commit = F.mse_loss(z, q)
        return z + (q - z).detach(), commit


enc, vq, dec = nn.Linear(10, 4), EmaQuantizer(8, 4), nn.Linear(4, 10)
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
for step in range(15):
    x = torch.randn(40, 10)
    q, commit = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + 0.25 * commit
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct conflicting-gradients-projected
# families = ["accumulation", "leaf", "retention"]
# resembles = "gradients of two tasks are computed apart, with a kept graph, and assigned by hand"
# ///
import torch
from torch import nn

torch.manual_seed(43)
shared, heads = nn.Linear(10, 16), nn.ModuleList(nn.Linear(16, 1) for _ in range(2))
optimizer = torch.optim.Adam([*shared.parameters(), *heads.parameters()], lr=3e-3)
weights = torch.randn(10, 2)
for step in range(12):
    x = torch.randn(48, 10)
    y = torch.tanh(x @ weights)
    h = torch.relu(shared(x))
    losses = [(heads[i](h).squeeze(1) - y[:, i]).square().mean() for i in range(2)]
    flat = []
    for i, loss in enumerate(losses):
        grads = torch.autograd.grad(loss, list(shared.parameters()), retain_graph=True)
        flat.append(torch.cat([g.flatten() for g in grads]))
    dot = flat[0] @ flat[1]
    if dot < 0:
        g0, g1 = flat
        flat = [g0 - dot / g1.square().sum() * g1, g1 - dot / g0.square().sum() * g0]
    merged, at = flat[0] + flat[1], 0
    optimizer.zero_grad()
    head_grads = torch.autograd.grad(sum(losses), list(heads.parameters()))
    for p, g in zip(heads.parameters(), head_grads):
        p.grad = g
    for p in shared.parameters():
        p.grad = merged[at:at + p.numel()].view_as(p).clone()
        at += p.numel()
    optimizer.step()
print([loss.item() for loss in losses])
# /// correct ddp-accumulation
# families = ["distributed", "accumulation"]
# resembles = "forward and backward under no_sync but for the last micro-batch"
# ///
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(45)
model = DDP(nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
accumulate = 3
for update in range(4):
    optimizer.zero_grad()
    for micro in range(accumulate):
        last = micro == accumulate - 1
        with contextlib.nullcontext() if last else model.no_sync():
            x, y = torch.randn(8, 7), torch.randint(0, 2, (8,))
            loss = nn.functional.cross_entropy(model(x), y)
            (loss / accumulate).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(update, loss.item())
dist.destroy_process_group()
# /// correct dead-end-rows-in-attention
# families = ["numerics"]
# resembles = "rows without a key are given one and left out of the output"
# ///
import torch
from torch import nn

torch.manual_seed(54)


class PooledAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.query, self.key, self.value = nn.Parameter(torch.randn(dim)), nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, x, valid):
        score = self.key(x) @ self.query / x.shape[-1] ** 0.5
        empty = ~valid.any(1, keepdim=True)
        score = score.masked_fill(~(valid | empty), float("-inf"))
        pooled = (score.softmax(1)[..., None] * self.value(x)).sum(1)
        return pooled.masked_fill(empty, 0.0)


pool, head = PooledAttention(10), nn.Linear(10, 2)
optimizer = torch.optim.Adam([*pool.parameters(), *head.parameters()], lr=5e-3)
for step in range(12):
    x = torch.randn(16, 6, 10)
    valid = torch.arange(6) < torch.randint(0, 7, (16, 1))
    y = (x[:, 0, 0] > 0).long()
    loss = nn.functional.cross_entropy(head(pool(x, valid)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct descent-by-hand
# families = ["leaf", "in-place"]
# resembles = "leaves are updated in place without gradient, and their gradients set to None"
# ///
import torch

torch.manual_seed(44)
w1 = (torch.randn(6, 16) * 0.3).requires_grad_(True)
w2 = (torch.randn(16, 1) * 0.3).requires_grad_(True)
momentum = {id(w): torch.zeros_like(w) for w in (w1, w2)}
for step in range(40):
    x = torch.randn(64, 6)
    y = x[:, :1] * x[:, 1:2]
    loss = (torch.relu(x @ w1) @ w2 - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            v = momentum[id(w)]
            v.mul_(0.9).add_(w.grad)
            w -= 0.01 * v
            w.grad = None
print(loss.item())
# /// correct distillation-with-temperature
# families = ["loss", "graph-break"]
# resembles = "a teacher without gradient, log-probabilities against probabilities, scaled by the squared temperature"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
teacher = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
teacher.requires_grad_(False)
student = nn.Linear(8, 5)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
T, alpha = 4.0, 0.7
for step in range(15):
    x, y = torch.randn(32, 8), torch.randint(0, 5, (32,))
    soft = F.softmax(teacher(x) / T, dim=1)
    logits = student(x)
    kd = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
    loss = alpha * kd + (1 - alpha) * F.cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct domain-adversarial-reversal
# families = ["function"]
# resembles = "a Function that returns the negated gradient, and None for its number"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.lambd, None


torch.manual_seed(17)
features, label, domain = nn.Sequential(nn.Linear(10, 16), nn.ReLU()), nn.Linear(16, 3), nn.Linear(16, 2)
optimizer = torch.optim.SGD([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.05)
for step in range(12):
    source, target = torch.randn(24, 10), torch.randn(24, 10) + 0.5
    y = source[:, :3].argmax(1)
    h = features(torch.cat([source, target]))
    lambd = 2 / (1 + 2.718 ** (-step)) - 1
    loss = F.cross_entropy(label(h[:24]), y)
    loss = loss + F.cross_entropy(domain(Reverse.apply(h, lambd)), torch.arange(2).repeat_interleave(24))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct double-dqn-with-polyak-target
# families = ["identity", "retention"]
# resembles = "a deep copy that is moved slowly, and targets without gradient"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(2)


class Agent:
    def __init__(self, tau=0.02, gamma=0.95):
        self.online = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-3)
        self.tau, self.gamma = tau, gamma

    def learn(self, s, a, r, s2, done):
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + self.gamma * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        q = self.online(s).gather(1, a[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for t, p in zip(self.target.parameters(), self.online.parameters()):
                t.lerp_(p, self.tau)
        return loss.item()


agent = Agent()
for it in range(15):
    s = torch.randn(32, 4)
    a = torch.randint(0, 3, (32,))
    print(it, agent.learn(s, a, s[torch.arange(32), a], torch.randn(32, 4), (torch.rand(32) < 0.1).float()))
# /// correct energy-model-with-langevin
# families = ["leaf", "flags", "graph-break"]
# resembles = "samples are leaves that are moved by their own gradient while the weights are frozen"
# ///
import torch
from torch import nn

torch.manual_seed(33)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(200, 2)


def langevin(start, steps=8, size=0.05):
    energy.requires_grad_(False)
    x = start.clone()
    for _ in range(steps):
        x.requires_grad_(True)
        grad = torch.autograd.grad(energy(x).sum(), x)[0]
        x = (x.detach() - size * grad + 0.02 * torch.randn_like(x)).clamp(-3, 3)
    energy.requires_grad_(True)
    return x


for step in range(8):
    data = torch.randn(32, 2) * 0.3 + torch.tensor([1.0, -1.0])
    idx = torch.randint(0, 200, (32,))
    samples = langevin(buffer[idx])
    buffer[idx] = samples
    plus, minus = energy(data), energy(samples)
    loss = plus.mean() - minus.mean() + 0.1 * (plus.square() + minus.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct experts-with-balance-loss
# families = ["graph-break", "loss"]
# resembles = "counts without gradient times mean probabilities with gradient"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(37)


class MoE(nn.Module):
    def __init__(self, dim=8, n=4):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weight, chosen = probs.max(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            at = (chosen == i).nonzero().squeeze(1)
            out = out.index_add(0, at, expert(x[at]) * weight[at, None])
        fraction = F.one_hot(chosen, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (fraction * probs.mean(0)).sum()
        return out, balance


moe, head = MoE(), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*moe.parameters(), *head.parameters()], lr=3e-3)
for step in range(15):
    x = torch.randn(64, 8)
    h, balance = moe(x)
    loss = (head(x + h).squeeze(1) - x[:, 0].abs()).square().mean() + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), balance.item())
# /// correct first-order-maml-on-purpose
# families = ["higher-order", "identity"]
# resembles = "gradients of the adapted copy are given to the original parameters"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(13)


def adapt(model, x, y, steps=2, lr=0.1):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        inner.zero_grad()
        nn.functional.mse_loss(learner(x), y).backward()
        inner.step()
    return learner


def task(n=10):
    scale, phase = torch.rand(1) * 2 + 0.5, torch.rand(1) * 3
    x = torch.rand(2 * n, 1) * 6 - 3
    y = scale * torch.sin(x + phase)
    return x[:n], y[:n], x[n:], y[n:]


model = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
meta = torch.optim.Adam(model.parameters(), lr=2e-3)
for it in range(6):
    # first-order approximation: the query gradient at the adapted weights moves the initial ones
    meta.zero_grad()
    total = 0.0
    for _ in range(3):
        xs, ys, xq, yq = task()
        learner = adapt(model, xs, ys)
        loss = nn.functional.mse_loss(learner(xq), yq)
        grads = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), grads):
            p.grad = g / 3 if p.grad is None else p.grad + g / 3
        total += loss.item()
    meta.step()
    print(it, total / 3)
# /// correct frozen-backbone-linear-probe
# families = ["flags", "mode"]
# resembles = "backbone without gradients, in eval mode on purpose, in a no_grad forward"
# ///
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
backbone.requires_grad_(False)
backbone.eval()
probe = nn.Linear(32, 4)
optimizer = torch.optim.SGD(probe.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    probe.train()
    total = 0.0
    for _ in range(5):
        x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 4, (16,))
        with torch.no_grad():
            features = backbone(x)
        loss = nn.functional.cross_entropy(probe(features), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / 5)
# /// correct gan-that-clears-what-leaks
# families = ["accumulation", "identity"]
# resembles = "the generator's step leaves gradients in the discriminator, which are cleared before they are used"
# ///
import torch
from torch import nn

torch.manual_seed(5)


class Gan:
    def __init__(self):
        self.g = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 12), nn.Tanh())
        self.d = nn.Sequential(nn.Linear(12, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
        self.og = torch.optim.Adam(self.g.parameters(), 2e-4, betas=(0.5, 0.999))
        self.od = torch.optim.Adam(self.d.parameters(), 2e-4, betas=(0.5, 0.999))
        self.bce = nn.BCEWithLogitsLoss()

    def step(self, real):
        fake = self.g(torch.randn(len(real), 8))
        ones, zeros = torch.ones(len(real), 1), torch.zeros(len(real), 1)
        # discriminator: old gradients away first
        self.od.zero_grad()
        d_loss = self.bce(self.d(real), ones) + self.bce(self.d(fake.detach()), zeros)
        d_loss.backward()
        self.od.step()
        # generator, through the new discriminator and the same fakes
        self.og.zero_grad()
        g_loss = self.bce(self.d(fake), ones)
        g_loss.backward()
        self.og.step()
        return d_loss.item(), g_loss.item()


gan = Gan()
for it in range(8):
    print(it, gan.step(torch.tanh(torch.randn(16, 12) + 0.5)))
# /// correct graph-network-with-masks
# families = ["data", "loss"]
# resembles = "all nodes are seen, labels of training nodes only"
# ///
import torch
from torch import nn

torch.manual_seed(36)
n = 60
y = torch.randint(0, 3, (n,))
x = nn.functional.one_hot(y, 3).float() * 0.5 + torch.randn(n, 3)
adj = ((y[:, None] == y[None]) & (torch.rand(n, n) < 0.15)).float()
adj = ((adj + adj.T + torch.eye(n)) > 0).float()
adj = adj / adj.sum(1, keepdim=True)
train = torch.zeros(n, dtype=torch.bool)
train[torch.randperm(n)[:30]] = True
l1, l2 = nn.Linear(3, 16), nn.Linear(16, 3)
optimizer = torch.optim.Adam([*l1.parameters(), *l2.parameters()], lr=1e-2, weight_decay=5e-4)


def net(dropout):
    h = torch.relu(adj @ l1(x))
    h = nn.functional.dropout(h, 0.3, training=dropout)
    return adj @ l2(h)


for epoch in range(20):
    logits = net(True)
    loss = nn.functional.cross_entropy(logits[train], y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), (net(False).argmax(1) == y)[~train].float().mean().item())
# /// correct hard-gumbel-choice
# families = ["graph-break"]
# resembles = "a hard one-hot choice with the gradient of the soft one"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(12)


class Selector(nn.Module):
    def __init__(self, n, k):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k, n))
        self.head = nn.Linear(k, 1)

    def forward(self, x, tau):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=tau, hard=True)
        else:
            choice = F.one_hot(self.logits.argmax(1), x.shape[1]).float()
        return self.head(x @ choice.T).squeeze(1)


model = Selector(10, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-2)
for step in range(40):
    model.train()
    x = torch.randn(64, 10)
    loss = (model(x, tau=max(0.3, 1 - step / 40)) - 2 * x[:, 2] + x[:, 7]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(loss.item(), (model(x, 0.3) - 2 * x[:, 2] + x[:, 7]).square().mean().item())
# /// correct heat-equation-network
# families = ["higher-order"]
# resembles = "first and second derivatives with respect to single inputs of one output"
# ///
import math

import torch
from torch import nn

torch.manual_seed(35)


def d(out, wrt):
    return torch.autograd.grad(out, wrt, grad_outputs=torch.ones_like(out), create_graph=True)[0]


u = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
log_kappa = nn.Parameter(torch.tensor(-2.0))
optimizer = torch.optim.Adam([*u.parameters(), log_kappa], lr=3e-3)
for it in range(15):
    x, t = torch.rand(60, 1, requires_grad=True), torch.rand(60, 1, requires_grad=True)
    out = u(torch.cat([x, t], 1))
    residual = d(out, t) - log_kappa.exp() * d(d(out, x), x)
    x0 = torch.rand(40, 1)
    start = u(torch.cat([x0, torch.zeros_like(x0)], 1)) - torch.sin(math.pi * x0)
    side = u(torch.cat([torch.randint(0, 2, (20, 1)).float(), torch.rand(20, 1)], 1))
    loss = residual.square().mean() + start.square().mean() + side.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), log_kappa.exp().item())
# /// correct hooks-that-are-removed
# families = ["hook", "retention"]
# resembles = "a forward hook that keeps a detached tensor, and a gradient hook that scales a shared trunk"
# ///
import torch
from torch import nn

torch.manual_seed(42)
trunk, a, b = nn.Sequential(nn.Linear(8, 24), nn.ReLU()), nn.Linear(24, 3), nn.Linear(24, 1)
params = [*trunk.parameters(), *a.parameters(), *b.parameters()]
optimizer = torch.optim.SGD(params, lr=0.05)
seen = {}
handle = trunk[1].register_forward_hook(lambda m, i, o: seen.__setitem__("alive", (o.detach() > 0).float().mean().item()))
for step in range(10):
    x = torch.randn(32, 8)
    h = trunk(x)
    h.register_hook(lambda g: g / 2)  # two heads pull at it
    loss = nn.functional.cross_entropy(a(h), x[:, :3].argmax(1)) + (b(h).squeeze(1) - x[:, 3]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 4:
        handle.remove()
print(loss.item(), seen)
# /// correct masked-language-loss
# families = ["loss", "data"]
# resembles = "padding is ignored, labels are shifted once, tokens are counted over the window"
# ///
import torch
from torch import nn

torch.manual_seed(30)
PAD, IGNORE = 0, -100


def batch(lengths, vocab=25):
    rows = [torch.randint(1, vocab, (n,)) for n in lengths]
    ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    return ids, ids.masked_fill(ids == PAD, IGNORE)


embed, rnn, head = nn.Embedding(25, 16, padding_idx=PAD), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 25)
params = [*embed.parameters(), *rnn.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(params, lr=3e-3)
for update in range(4):
    window = [batch(torch.randint(3, 15, (6,)).tolist()) for _ in range(3)]
    tokens = sum((labels[:, 1:] != IGNORE).sum() for _, labels in window)
    total = 0.0
    for ids, labels in window:
        logits = head(rnn(embed(ids))[0])[:, :-1]
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=IGNORE, reduction="sum") / tokens
        loss.backward()
        total += loss.item()
    optimizer.step()
    optimizer.zero_grad()
    print(update, total)
# /// correct mixed-precision-with-clipping
# families = ["numerics", "optimizer"]
# resembles = "unscaled before clipping, updated in each iteration even if a step is skipped"
# ///
import torch
from torch import nn

torch.manual_seed(20)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
for step in range(10):
    x = torch.randn(24, 10)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
    loss = (out.float() - x[:, :1]).square().mean()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if torch.isfinite(norm) and norm < 50:
        scaler.step(optimizer)
    scaler.update()
print(loss.item(), scaler.get_scale())
# /// correct newton-with-conjugate-gradients
# families = ["higher-order", "retention"]
# resembles = "one graph that is walked back many times for products with the Hessian"
# ///
import torch
from torch import nn

torch.manual_seed(52)
model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
params = list(model.parameters())
x = torch.randn(60, 3)
y = torch.tanh(x @ torch.randn(3, 1))


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


for it in range(4):
    loss = (model(x) - y).square().mean()
    g = flat(torch.autograd.grad(loss, params, create_graph=True))

    def hvp(v):
        return flat(torch.autograd.grad(g @ v, params, retain_graph=True)) + 0.1 * v

    b = -g.detach()
    step, r = torch.zeros_like(b), b.clone()
    p, rr = r.clone(), r @ r
    for _ in range(8):
        hp = hvp(p)
        curvature = p @ hp
        if curvature <= 0:
            break
        a = rr / curvature
        step, r = step + a * p, r - a * hp
        new = r @ r
        p, rr = r + new / rr * p, new
    with torch.no_grad():
        at = 0
        for q in params:
            q += step[at:at + q.numel()].view_as(q)
            at += q.numel()
    print(it, loss.item())
# /// correct one-cycle-per-batch
# families = ["optimizer"]
# resembles = "a schedule made for one advance per batch"
# ///
import torch
from torch import nn

torch.manual_seed(21)
x = torch.randn(96, 5)
y = x @ torch.randn(5, 1)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
epochs, size = 3, 16
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(x) // size)
for epoch in range(epochs):
    for idx in torch.randperm(len(x)).split(size):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
# /// correct plateau-after-validation
# families = ["optimizer", "mode"]
# resembles = "evaluation mode and back, a plateau schedule fed with numbers, a deep copy of the best"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(22)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
x = torch.randn(120, 6)
y = (x[:, :1] * x[:, 1:2])
best, best_state = float("inf"), None
for epoch in range(8):
    model.train()
    for idx in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[80:]), y[80:]).item()
    scheduler.step(val)
    if val < best:
        best, best_state = val, copy.deepcopy(model.state_dict())
model.load_state_dict(best_state)
print(best, optimizer.param_groups[0]["lr"])
# /// correct prioritised-replay
# families = ["graph-break", "identity"]
# resembles = "errors leave the graph to become priorities; importance weights are constants"
# ///
import copy

import numpy as np
import torch
from torch import nn

torch.manual_seed(53)
rng = np.random.default_rng(53)
net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
target = copy.deepcopy(net).requires_grad_(False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
s, a, s2 = torch.randn(200, 4), torch.randint(0, 2, (200,)), torch.randn(200, 4)
r = s.gather(1, a[:, None]).squeeze(1)
priority = np.ones(200)
for step in range(20):
    p = priority ** 0.6
    p /= p.sum()
    idx = rng.choice(200, 32, p=p)
    weight = torch.from_numpy((200 * p[idx]) ** -0.4).float()
    i = torch.from_numpy(idx)
    with torch.no_grad():
        goal = r[i] + 0.9 * target(s2[i]).amax(1)
    error = net(s[i]).gather(1, a[i][:, None]).squeeze(1) - goal
    loss = (weight / weight.max() * error.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    priority[idx] = error.detach().abs().numpy() + 1e-3
    if step % 5 == 4:
        target.load_state_dict(net.state_dict())
print(loss.item())
# /// correct progressive-unfreezing
# families = ["flags", "optimizer"]
# resembles = "layers are unfrozen later and given to the optimizer then"
# ///
import torch
from torch import nn

torch.manual_seed(55)
layers = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 3)])
layers[:2].requires_grad_(False)
optimizer = torch.optim.SGD(layers[2].parameters(), lr=0.05, momentum=0.9)


def net(x):
    for layer in layers[:-1]:
        x = torch.relu(layer(x))
    return layers[-1](x)


for epoch in range(6):
    if epoch in (2, 4):
        layer = layers[2 - epoch // 2]
        layer.requires_grad_(True)
        optimizer.add_param_group({"params": list(layer.parameters()), "lr": 0.01})
    for _ in range(5):
        x = torch.randn(32, 8)
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), len(optimizer.param_groups))
# /// correct quasi-newton-closure
# families = ["accumulation", "retention"]
# resembles = "a closure that clears, predicts and walks back in each evaluation"
# ///
import torch
from torch import nn

torch.manual_seed(15)
x = torch.linspace(-1, 1, 60)[:, None]
y = torch.exp(-4 * x ** 2) + 0.02 * torch.randn_like(x)
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=8, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    loss = (net(x) - y).square().mean() + 1e-4 * sum(p.square().sum() for p in net.parameters())
    loss.backward()
    return loss


for epoch in range(4):
    print(epoch, optimizer.step(closure).item())
# /// correct queue-of-negatives
# families = ["retention", "in-place"]
# resembles = "a buffer of detached keys that is overwritten in place after each step"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)


class Queue(nn.Module):
    def __init__(self, size, dim):
        super().__init__()
        self.register_buffer("keys", F.normalize(torch.randn(size, dim), dim=1))
        self.register_buffer("at", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def push(self, new):
        i = int(self.at)
        self.keys[i:i + len(new)] = new
        self.at.copy_((self.at + len(new)) % len(self.keys))


encoder, key_encoder = nn.Linear(10, 8), nn.Linear(10, 8)
key_encoder.load_state_dict(encoder.state_dict())
key_encoder.requires_grad_(False)
queue = Queue(64, 8)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for step in range(12):
    x = torch.randn(16, 10)
    q = F.normalize(encoder(x), dim=1)
    with torch.no_grad():
        k = F.normalize(key_encoder(x + 0.1 * torch.randn_like(x)), dim=1)
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.keys.clone().T], 1) / 0.2
    loss = F.cross_entropy(logits, torch.zeros(16, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for a, b in zip(key_encoder.parameters(), encoder.parameters()):
            a.lerp_(b, 0.01)
    queue.push(k)
print(loss.item())
# /// correct reinforce-with-a-learned-baseline
# families = ["graph-break", "loss"]
# resembles = "rewards are constants, the advantage is detached, and the baseline has its own term"
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(7)
policy = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 3))
baseline = nn.Linear(5, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *baseline.parameters()], lr=5e-3)
for episode in range(10):
    states = torch.randn(40, 5)
    dist = Categorical(logits=policy(states))
    actions = dist.sample()
    rewards = (actions == states[:, :3].argmax(1)).float()
    value = baseline(states).squeeze(1)
    advantage = rewards - value.detach()
    loss = -(dist.log_prob(actions) * advantage).mean() + 0.5 * (value - rewards).square().mean() - 0.01 * dist.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, rewards.mean().item())
# /// correct reptile
# families = ["identity", "leaf"]
# resembles = "weights of an adapted copy are mixed in without gradient"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
for it in range(8):
    w = torch.randn(2, 1)
    learner = copy.deepcopy(model)
    optimizer = torch.optim.SGD(learner.parameters(), lr=0.05)
    for _ in range(4):
        x = torch.randn(20, 2)
        loss = (learner(x) - torch.tanh(x @ w)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        for p, q in zip(model.parameters(), learner.parameters()):
            p.add_(q - p, alpha=0.3)
    print(it, loss.item())
# /// correct residual-branches-that-start-at-zero
# families = ["scale"]
# resembles = "the last weight of each branch is zero, and gets a gradient"
# ///
import torch
from torch import nn

torch.manual_seed(51)


class Branch(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


net = nn.Sequential(nn.Linear(5, 12), *[Branch(12) for _ in range(4)], nn.Linear(12, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
for step in range(20):
    x = torch.randn(48, 5)
    loss = (net(x).squeeze(1) - x.prod(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct rounding-with-straight-through
# families = ["graph-break"]
# resembles = "a rounded value whose difference is detached"
# ///
import torch
from torch import nn

torch.manual_seed(1)


class Int4Linear(nn.Linear):
    def __init__(self, i, o):
        super().__init__(i, o)
        self.step = nn.Parameter(torch.tensor(0.05))

    def forward(self, x):
        w = (self.weight / self.step).clamp(-8, 7)
        w = (w + (w.round() - w).detach()) * self.step
        return nn.functional.linear(x, w, self.bias)


net = nn.Sequential(Int4Linear(6, 24), nn.ReLU(), Int4Linear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for step in range(20):
    x = torch.randn(32, 6)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] * x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct safe-root-and-where
# families = ["numerics"]
# resembles = "the argument of root and quotient is made safe before the choice"
# ///
import torch
from torch import nn

torch.manual_seed(31)


def soft_norm(x, eps=1e-6):
    squared = x.square().sum(-1)
    positive = squared > eps
    return torch.where(positive, torch.where(positive, squared, torch.ones_like(squared)).sqrt(), torch.zeros_like(squared))


class Direction(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        v = self.net(x) * (x[:, :1] > 0)
        n = soft_norm(v)
        return v / torch.where(n > 0, n, torch.ones_like(n))[:, None], n


model = Direction()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(12):
    x = torch.randn(32, 3)
    unit, size = model(x)
    wanted = nn.functional.normalize(x[:, 1:], dim=1)
    loss = -((unit * wanted).sum(1) * (x[:, 0] > 0)).mean() + 0.01 * size.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct sampler-that-knows-the-epoch
# families = ["distributed", "data"]
# resembles = "set_epoch before each pass; validation keeps its order"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

torch.manual_seed(46)
data = TensorDataset(torch.randn(60, 5), torch.randint(0, 2, (60,)))
sampler = DistributedSampler(data, num_replicas=2, rank=1, shuffle=True, drop_last=True)
loader = DataLoader(data, batch_size=10, sampler=sampler)
held = DataLoader(TensorDataset(torch.randn(20, 5), torch.randint(0, 2, (20,))), batch_size=10, shuffle=False)
model = nn.Linear(5, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(3):
    sampler.set_epoch(epoch)
    model.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = torch.cat([(model(x).argmax(1) == y).float() for x, y in held]).mean().item()
    print(epoch, loss.item(), accuracy)
# /// correct scaled-by-training-rows
# families = ["data"]
# resembles = "statistics of the training rows, and fixed noise for validation only"
# ///
import torch
from torch import nn

torch.manual_seed(50)
raw = torch.randn(150, 4) * torch.tensor([1.0, 10.0, 0.1, 5.0]) + 3
target = raw[:, 0] + 0.1 * raw[:, 1]
order = torch.randperm(150)
train, held = order[:110], order[110:]
mean, std = raw[train].mean(0), raw[train].std(0)
x = (raw - mean) / std
y = (target - target[train].mean()) / target[train].std()
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
fixed = torch.randn(len(held), 4, generator=torch.Generator().manual_seed(0))
for epoch in range(6):
    for idx in train[torch.randperm(len(train))].split(22):
        noisy = x[idx] + 0.05 * torch.randn(len(idx), 4)
        loss = (model(noisy).squeeze(1) - y[idx]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x[held] + 0.05 * fixed).squeeze(1) - y[held]).square().mean().item())
# /// correct sharpness-aware-steps
# families = ["in-place", "accumulation"]
# resembles = "two backward passes per step, with weights that are moved and moved back in place"
# ///
import torch
from torch import nn

torch.manual_seed(16)


class SAM:
    def __init__(self, params, rho=0.05, **kwargs):
        self.params, self.rho = list(params), rho
        self.base = torch.optim.SGD(self.params, **kwargs)

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        self.moved = [p.grad * (self.rho / norm) for p in self.params]
        for p, e in zip(self.params, self.moved):
            p.add_(e)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.moved):
            p.sub_(e)
        self.base.step()
        self.base.zero_grad()


net = nn.Sequential(nn.Linear(7, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = SAM(net.parameters(), lr=0.1, momentum=0.9)
for step in range(10):
    x, y = torch.randn(32, 7), torch.randint(0, 3, (32,))
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.climb()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.descend()
print(loss.item())
# /// correct small-diffusion
# families = ["graph-break", "identity"]
# resembles = "constant schedules as buffers, noise as target, sampling with averaged weights"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(34)


class Denoiser(nn.Module):
    def __init__(self, dim=2, steps=40):
        super().__init__()
        beta = torch.linspace(1e-3, 0.2, steps)
        self.register_buffer("beta", beta)
        self.register_buffer("bar", (1 - beta).cumprod(0))
        self.time = nn.Embedding(steps, 16)
        self.net = nn.Sequential(nn.Linear(dim + 16, 48), nn.SiLU(), nn.Linear(48, dim))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], 1))


model = Denoiser()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(20):
    x0 = torch.randn(64, 2) * 0.2 + 1
    t, noise = torch.randint(0, 40, (64,)), torch.randn(64, 2)
    a = model.bar[t][:, None]
    loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for e, p in zip(average.parameters(), model.parameters()):
            e.lerp_(p, 0.05)
with torch.no_grad():
    x = torch.randn(10, 2)
    for t in reversed(range(40)):
        at = torch.full((10,), t)
        b, a = average.beta[t], average.bar[t]
        x = (x - b / (1 - a).sqrt() * average(x, at)) / (1 - b).sqrt()
        if t:
            x = x + b.sqrt() * torch.randn_like(x)
print(loss.item(), x.mean().item())
# /// correct soft-actor-critic-with-temperature
# families = ["accumulation", "identity", "flags"]
# resembles = "the critics are frozen for the actor's loss, and the temperature has a detached entropy"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(39)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


actor, q1, q2 = mlp(3, 4), mlp(5, 1), mlp(5, 1)
targets = [copy.deepcopy(q).requires_grad_(False) for q in (q1, q2)]
log_alpha = torch.zeros(1, requires_grad=True)
opt_actor = torch.optim.Adam(actor.parameters(), 1e-3)
opt_q = torch.optim.Adam([*q1.parameters(), *q2.parameters()], 1e-3)
opt_alpha = torch.optim.Adam([log_alpha], 1e-3)


def act(s):
    mu, log_std = actor(s).chunk(2, 1)
    dist = torch.distributions.Normal(mu, log_std.clamp(-4, 1).exp())
    raw = dist.rsample()
    logp = (dist.log_prob(raw) - torch.log(1 - raw.tanh().square() + 1e-6)).sum(1, keepdim=True)
    return raw.tanh(), logp


for step in range(8):
    s, a, s2 = torch.randn(32, 3), torch.rand(32, 2) * 2 - 1, torch.randn(32, 3)
    r = -(a - s[:, :2]).square().sum(1, keepdim=True)
    with torch.no_grad():
        a2, logp2 = act(s2)
        y = r + 0.95 * (torch.min(*[t(torch.cat([s2, a2], 1)) for t in targets]) - log_alpha.exp() * logp2)
    pair = torch.cat([s, a], 1)
    loss_q = (q1(pair) - y).square().mean() + (q2(pair) - y).square().mean()
    opt_q.zero_grad()
    loss_q.backward()
    opt_q.step()

    for q in (q1, q2):
        q.requires_grad_(False)
    new, logp = act(s)
    pair = torch.cat([s, new], 1)
    loss_pi = (log_alpha.exp().detach() * logp - torch.min(q1(pair), q2(pair))).mean()
    opt_actor.zero_grad()
    loss_pi.backward()
    opt_actor.step()
    for q in (q1, q2):
        q.requires_grad_(True)

    loss_alpha = -(log_alpha * (logp + (-2.0)).detach()).mean()
    opt_alpha.zero_grad()
    loss_alpha.backward()
    opt_alpha.step()
    with torch.no_grad():
        for t, q in zip(targets, (q1, q2)):
            for a_, b_ in zip(t.parameters(), q.parameters()):
                a_.lerp_(b_, 0.01)
print(loss_q.item(), loss_pi.item(), log_alpha.item())
# /// correct stochastic-weight-averaging
# families = ["mode", "identity"]
# resembles = "training mode without gradients, to estimate the statistics of averaged weights"
# ///
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn

torch.manual_seed(49)
model = nn.Sequential(nn.Linear(6, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
average = AveragedModel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
swa = SWALR(optimizer, swa_lr=0.02, anneal_epochs=2)
x = torch.randn(96, 6)
y = (x[:, 0] > x[:, 1]).long()
for epoch in range(8):
    model.train()
    for idx in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch >= 4:
        average.update_parameters(model)
        swa.step()
update_bn(x.split(24), average)
average.eval()
with torch.no_grad():
    print((average(x).argmax(1) == y).float().mean().item())
# /// correct tied-embeddings
# families = ["identity", "optimizer"]
# resembles = "one weight under two names, in the optimizer once"
# ///
import torch
from torch import nn

torch.manual_seed(23)


class TiedLM(nn.Module):
    def __init__(self, vocab=30, dim=16):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(vocab, dim), nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.embed.weight, std=0.1)
        self.head.weight = self.embed.weight

    def forward(self, ids):
        return self.head(self.rnn(self.embed(ids))[0])


model = TiedLM()
decay = [p for p in model.parameters() if p.ndim > 1]
plain = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=3e-3)
for step in range(8):
    ids = torch.randint(0, 30, (6, 12))
    logits = model(ids[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), model.head.weight is model.embed.weight)
# /// correct truncated-backpropagation
# families = ["retention", "graph-break"]
# resembles = "both parts of an LSTM's state are detached between windows"
# ///
import torch
from torch import nn

torch.manual_seed(6)


class CharModel(nn.Module):
    def __init__(self, vocab=16, dim=24):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, dim), nn.LSTM(dim, dim, batch_first=True), nn.Linear(dim, vocab)

    def forward(self, ids, state):
        h, state = self.rnn(self.emb(ids), state)
        return self.out(h), state


def repackage(state):
    return None if state is None else tuple(s.detach() for s in state)


text = torch.randint(0, 16, (4, 81))
model = CharModel()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    state = None
    for i in range(0, 80, 20):
        state = repackage(state)
        logits, state = model(text[:, i:i + 20], state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), text[:, i + 1:i + 21].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
    print(epoch, loss.item())
# /// correct uncertainty-by-dropout
# families = ["mode"]
# resembles = "dropout stays on in prediction, on purpose, batch norm does not"
# ///
import torch
from torch import nn

torch.manual_seed(48)
model = nn.Sequential(nn.Linear(1, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.rand(80, 1) * 2 - 1
y = torch.sin(3 * x)
for epoch in range(15):
    model.train()
    for idx in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(model(x[idx]), y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def monte_carlo(model, x, n=20):
    model.eval()
    for m in model.modules():
        if isinstance(m, nn.Dropout):
            m.train()
    with torch.no_grad():
        draws = torch.stack([model(x) for _ in range(n)])
    model.eval()
    return draws.mean(0), draws.std(0)


mean, spread = monte_carlo(model, torch.tensor([[0.0], [3.0]]))
print(loss.item(), spread.flatten())
# /// correct variational-autoencoder-rsample
# families = ["loss", "graph-break"]
# resembles = "a sample with a path, a divergence that sums and averages rightly"
# ///
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

torch.manual_seed(40)
enc, dec = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 6)), nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 12))
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
basis = torch.randn(3, 12)
for step in range(20):
    x = torch.randn(32, 3) @ basis + 0.1 * torch.randn(32, 12)
    mu, log_std = enc(x).chunk(2, 1)
    q = Normal(mu, log_std.exp())
    z = q.rsample()
    nll = 0.5 * (dec(z) - x).square().sum(1)
    kl = kl_divergence(q, Normal(torch.zeros_like(mu), torch.ones_like(mu))).sum(1)
    beta = min(1.0, step / 10)
    loss = (nll + beta * kl).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct wasserstein-with-penalty
# families = ["higher-order", "graph-break"]
# resembles = "detached fakes in the critic's step, a penalty with create_graph"
# ///
import torch
from torch import autograd, nn

torch.manual_seed(4)
G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), 1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), 1e-3, betas=(0.0, 0.9))


def penalty(real, fake):
    mix = torch.rand(len(real), 1)
    x = (mix * real + (1 - mix) * fake).requires_grad_(True)
    grad = autograd.grad(D(x).sum(), x, create_graph=True)[0]
    return ((grad.norm(dim=1) - 1) ** 2).mean()


for it in range(5):
    D.requires_grad_(True)
    for _ in range(3):
        real = torch.randn(32, 2) * 0.3 + 1
        fake = G(torch.randn(32, 4)).detach()
        loss_d = D(fake).mean() - D(real).mean() + 10 * penalty(real, fake)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
    D.requires_grad_(False)
    loss_g = -D(G(torch.randn(32, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    print(it, loss_d.item(), loss_g.item())
