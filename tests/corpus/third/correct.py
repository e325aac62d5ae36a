# /// correct a-accumulate-with-remainder
# ///
"""Gradient accumulation over a variable number of micro-batches, one update per group."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Plan:
    group: int = 4
    clip: float = 1.0
    epochs: int = 3


class Accumulator:
    def __init__(self, model, opt, plan):
        self.model, self.opt, self.plan = model, opt, plan
        self.rows, self.updates = 0, 0

    def add(self, x, y):
        # sums are accumulated; the division by the number of rows follows in flush()
        loss = F.cross_entropy(self.model(x), y, reduction="sum")
        loss.backward()
        self.rows += len(x)
        return loss.item()

    def flush(self):
        if self.rows == 0:
            return
        for p in self.model.parameters():
            p.grad.div_(self.rows)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.plan.clip)
        self.opt.step()
        self.opt.zero_grad()
        self.rows = 0
        self.updates += 1


def loader(x, y, size):
    order = torch.randperm(len(x))
    for rows in order.split(size):
        yield x[rows], y[rows]


torch.manual_seed(0)
x = torch.randn(150, 8)
y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).long()
model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 2))
plan = Plan()
acc = Accumulator(model, torch.optim.AdamW(model.parameters(), lr=1e-2), plan)
for epoch in range(plan.epochs):
    total = 0.0
    for i, (bx, by) in enumerate(loader(x, y, 16), start=1):
        total += acc.add(bx, by)
        if i % plan.group == 0:
            acc.flush()
    acc.flush()
    print(epoch, round(total / len(x), 3), acc.updates)
# /// correct a-eval-backbone
# ///
"""Head training on a frozen batch-norm backbone that stays in eval mode."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Transfer(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, classes))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


def pretrained():
    net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
                        nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with torch.no_grad():
        for _ in range(5):  # running statistics of the "pre-training" data
            net(torch.rand(32, 1, 8, 8))
    return net


torch.manual_seed(0)
model = Transfer(pretrained(), classes=2)
opt = torch.optim.SGD((p for p in model.parameters() if p.requires_grad), lr=0.5, momentum=0.9)
stats = {k: v.clone() for k, v in model.backbone.state_dict().items()}
model.train()
for step in range(30):
    x = torch.rand(32, 1, 8, 8)
    y = torch.randint(0, 2, (32,))
    x[y == 1, :, ::2] *= 0.3
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
assert all(torch.equal(v, model.backbone.state_dict()[k]) for k, v in stats.items())
model.eval()
with torch.no_grad():
    print(round(loss.item(), 3), model(torch.rand(4, 1, 8, 8)).softmax(dim=1)[0].tolist())
# /// correct a-first-order-maml
# ///
"""First-order MAML: adapted copies are discarded, their gradients are written to the meta-weights by hand."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def line_task():
    slope, bias = torch.randn(2)

    def draw(n):
        x = torch.rand(n, 1) * 4 - 2
        return x, slope * x + bias

    return draw(8), draw(16)


def adapt(model, support, lr, steps):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.mse_loss(learner(support[0]), support[1])
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner


torch.manual_seed(0)
meta = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(meta.parameters(), lr=5e-3)
curve = []
for it in range(15):
    sums = [torch.zeros_like(p) for p in meta.parameters()]
    total = 0.0
    for _ in range(4):
        support, (xq, yq) = line_task()
        learner = adapt(meta, support, lr=0.05, steps=3)
        query = F.mse_loss(learner(xq), yq)
        for s, g in zip(sums, torch.autograd.grad(query, list(learner.parameters()))):
            s += g / 4
        total += query.item() / 4
    for p, s in zip(meta.parameters(), sums):
        p.grad = s
    opt.step()
    curve.append(total)
print(round(curve[0], 3), round(curve[-1], 3))
# /// correct a-functional-sgd
# ///
"""Softmax regression without nn.Module or torch.optim; weights are changed in place under no_grad."""
import torch

torch.manual_seed(0)
n, d, k = 200, 6, 3
true = torch.randn(d, k)
X = torch.randn(n, d)
Y = (X @ true + 0.1 * torch.randn(n, k)).argmax(dim=1)

W = torch.zeros(d, k, requires_grad=True)
b = torch.zeros(k, requires_grad=True)
velocity = {id(p): torch.zeros_like(p) for p in (W, b)}


def nll(x, y):
    logits = x @ W + b
    logp = logits - logits.logsumexp(dim=1, keepdim=True)
    return -logp[torch.arange(len(y)), y].mean()


def step(params, lr, momentum, decay):
    with torch.no_grad():
        for p in params:
            v = velocity[id(p)]
            v.mul_(momentum).add_(p.grad)
            p -= lr * (v + decay * p)
            p.clamp_(-5.0, 5.0)
            p.grad = None


losses = []
for epoch in range(5):
    for rows in torch.randperm(n).split(25):
        loss = nll(X[rows], Y[rows])
        loss.backward()
        step((W, b), lr=0.2, momentum=0.9, decay=1e-3)
        losses.append(loss.item())
with torch.no_grad():
    accuracy = ((X @ W + b).argmax(dim=1) == Y).float().mean().item()
print(round(losses[0], 3), round(losses[-1], 3), round(accuracy, 2))
# /// correct a-gan-alternating
# ///
"""Conditional GAN; each player has its own optimizer and the other one is switched off."""
from contextlib import contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


class Generator(nn.Module):
    def __init__(self, classes=3, noise=4):
        super().__init__()
        self.noise = noise
        self.label = nn.Embedding(classes, 4)
        self.net = nn.Sequential(nn.Linear(noise + 4, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, y):
        z = torch.randn(len(y), self.noise)
        return self.net(torch.cat([z, self.label(y)], dim=1))


class Discriminator(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.label = nn.Embedding(classes, 4)
        self.net = nn.Sequential(nn.Linear(6, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, x, y):
        return self.net(torch.cat([x, self.label(y)], dim=1)).squeeze(1)


def real_batch(n):
    y = torch.randint(0, 3, (n,))
    angle = y.float() * 2.0944
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.1 * torch.randn(n, 2), y


torch.manual_seed(0)
gen, disc = Generator(), Discriminator()
g_opt = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
d_opt = torch.optim.Adam(disc.parameters(), lr=2e-3, betas=(0.5, 0.9))
for it in range(40):
    x, y = real_batch(48)
    fake = gen(y).detach()
    d_loss = F.softplus(-disc(x, y)).mean() + F.softplus(disc(fake, y)).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()

    with frozen(disc):
        g_loss = F.softplus(-disc(gen(y), y)).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
print(round(d_loss.item(), 3), round(g_loss.item(), 3))
# /// correct a-gradient-attribution
# ///
"""Grad-CAM style attribution during training: hooks with detach, retain_grad, gradient of a chosen class."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        self.maps = self.body(x)
        return self.head(self.maps.mean(dim=(2, 3)))


def grad_cam(model, x):
    was_training = model.training
    model.eval()
    logits = model(x)
    maps = model.maps
    maps.retain_grad()
    chosen = logits.gather(1, logits.argmax(dim=1, keepdim=True)).sum()
    chosen.backward(inputs=[maps])
    weight = maps.grad.mean(dim=(2, 3), keepdim=True)
    cam = F.relu((weight * maps.detach()).sum(dim=1))
    model.maps = None
    model.train(was_training)
    return cam


def squares(n):
    y = torch.randint(0, 2, (n,))
    x = 0.2 * torch.randn(n, 1, 10, 10)
    for i in range(n):
        col = 1 if y[i] == 0 else 6
        x[i, 0, 3:6, col:col + 3] += 1.0
    x[y == 1] += 0.1
    return x, y


torch.manual_seed(0)
model = Net()
norms = []
handle = model.head.register_full_backward_hook(lambda m, gi, go: norms.append(go[0].detach().norm().item()))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
cams = []
for step in range(20):
    x, y = squares(16)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        cams.append(grad_cam(model, x[:4]))
handle.remove()
print(round(loss.item(), 3), tuple(torch.stack(cams).shape), len(norms))
# /// correct a-gradual-unfreeze
# ///
"""Fine-tuning in two phases: the trunk joins the optimizer when it is unfrozen."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        return self.head(self.trunk(x))


def batches(n, size=32):
    proj = torch.linspace(-1, 1, 30).view(10, 3)
    for _ in range(n):
        x = torch.randn(size, 10)
        yield x, (x @ proj).sin().argmax(dim=1)


def run_phase(model, opt, steps):
    for x, y in batches(steps):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


torch.manual_seed(0)
model = Net()

# phase 1: the trunk is frozen and unknown to the optimizer
model.trunk.requires_grad_(False)
opt = torch.optim.Adam(model.head.parameters(), lr=1e-2)
before = [p.clone() for p in model.trunk.parameters()]
first = run_phase(model, opt, 15)
assert all(torch.equal(a, b) for a, b in zip(before, model.trunk.parameters()))

# phase 2: everything is trained, the trunk with a smaller rate
model.trunk.requires_grad_(True)
opt.add_param_group({"params": list(model.trunk.parameters()), "lr": 1e-3})
second = run_phase(model, opt, 25)
assert any(not torch.equal(a, b) for a, b in zip(before, model.trunk.parameters()))
print(f"{first:.3f} {second:.3f}")
# /// correct a-mean-teacher
# ///
"""Mean teacher: the teacher is a moving average of the student and has no optimizer."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MeanTeacher:
    def __init__(self, student, decay=0.98):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self):
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(self.decay).add_(s, alpha=1 - self.decay)
        for t, s in zip(self.teacher.buffers(), self.student.buffers()):
            t.copy_(s)

    def consistency(self, clean, noisy):
        target = self.teacher(clean).softmax(dim=1)
        return F.mse_loss(self.student(noisy).softmax(dim=1), target)


def clusters(n):
    y = torch.randint(0, 3, (n,))
    return torch.randn(n, 6) + 2 * F.one_hot(y, 6).float(), y


torch.manual_seed(0)
student = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
mt = MeanTeacher(student)
opt = torch.optim.Adam(student.parameters(), lr=5e-3)
labelled = clusters(24)
for step in range(40):
    x, y = labelled
    u, _ = clusters(64)
    ramp = min(1.0, step / 20)
    loss = F.cross_entropy(student(x), y) + 2.0 * ramp * mt.consistency(u, u + 0.3 * torch.randn_like(u))
    opt.zero_grad()
    loss.backward()
    opt.step()
    mt.update()
x, y = clusters(300)
with torch.no_grad():
    acc = (mt.teacher(x).argmax(dim=1) == y).float().mean().item()
print(round(loss.item(), 3), round(acc, 2))
# /// correct a-prioritised-replay
# ///
"""DQN with prioritised replay; targets, priorities and acting are outside the graph."""
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class Replay:
    def __init__(self, size):
        self.items = deque(maxlen=size)
        self.priority = deque(maxlen=size)

    def push(self, item):
        self.items.append(item)
        self.priority.append(max(self.priority, default=1.0))

    def sample(self, n):
        p = torch.tensor(self.priority)
        idx = torch.multinomial(p / p.sum(), n)
        weight = (len(self.items) * p[idx] / p.sum()).pow(-0.5)
        return idx, weight / weight.max(), [self.items[i] for i in idx.tolist()]

    def reprioritise(self, idx, td):
        for i, e in zip(idx.tolist(), td.tolist()):
            self.priority[i] = abs(e) + 1e-3


def make_q():
    return nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 2))


torch.manual_seed(0)
random.seed(0)
q, target_q = make_q(), make_q().requires_grad_(False)
target_q.load_state_dict(q.state_dict())
opt = torch.optim.Adam(q.parameters(), lr=5e-3)
replay = Replay(300)
eye = torch.eye(5)
updates = []
s = 2
for t in range(160):
    with torch.no_grad():
        a = random.randrange(2) if random.random() < 0.3 else q(eye[s]).argmax().item()
    s2 = min(max(s + 2 * a - 1, 0), 4)
    done = s2 == 4
    replay.push((s, a, float(done), s2, done))
    s = 2 if done else s2
    if t < 32 or t % 4:
        continue
    idx, weight, items = replay.sample(24)
    st, at, rt, nt, dt = (torch.tensor(z) for z in zip(*items))
    with torch.no_grad():
        best = q(eye[nt]).argmax(dim=1, keepdim=True)
        goal = rt + 0.9 * (1 - dt.float()) * target_q(eye[nt]).gather(1, best).squeeze(1)
    pred = q(eye[st]).gather(1, at[:, None]).squeeze(1)
    loss = (weight * F.smooth_l1_loss(pred, goal, reduction="none")).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    replay.reprioritise(idx, (pred - goal).detach())
    updates.append(loss.item())
    if len(updates) % 8 == 0:
        target_q.load_state_dict(q.state_dict())
print(len(updates), round(updates[-1], 4))
# /// correct a-retained-graph-task-norms
# ///
"""Multi-task training; the gradient norm of each task on the shared trunk sets its weight."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh())
        self.heads = nn.ModuleDict({"size": nn.Linear(32, 1), "kind": nn.Linear(32, 3)})

    def forward(self, x):
        h = self.trunk(x)
        return {k: head(h) for k, head in self.heads.items()}


def task_losses(out, x):
    return {
        "size": F.mse_loss(out["size"].squeeze(1), 4 * x[:, 0] * x[:, 1]),
        "kind": F.cross_entropy(out["kind"], x[:, 2:5].argmax(dim=1)),
    }


def trunk_norms(model, losses):
    shared = list(model.trunk.parameters())
    norms = {}
    for name, loss in losses.items():
        grads = torch.autograd.grad(loss, shared, retain_graph=True)
        norms[name] = torch.cat([g.flatten() for g in grads]).norm().item()
    return norms


torch.manual_seed(0)
model = MultiTask()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
weights = {"size": 1.0, "kind": 1.0}
for step in range(40):
    x = torch.randn(48, 7)
    losses = task_losses(model(x), x)
    if step % 5 == 0:
        norms = trunk_norms(model, losses)
        mean = sum(norms.values()) / len(norms)
        weights = {k: 0.9 * weights[k] + 0.1 * mean / (norms[k] + 1e-8) for k in norms}
    total = sum(weights[k] * loss for k, loss in losses.items())
    opt.zero_grad()
    total.backward()
    opt.step()
print({k: round(v, 2) for k, v in weights.items()}, round(total.item(), 3))
# /// correct a-score-function
# ///
"""REINFORCE with a moving baseline: actions come from sample(), rewards are plain numbers."""
import torch
import torch.nn as nn
from torch.distributions import Bernoulli


class Policy(nn.Module):
    """Chooses a subset of items; one Bernoulli probability per item."""

    def __init__(self, features=4):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(features, 24), nn.Tanh(), nn.Linear(24, 1))

    def forward(self, items):
        return Bernoulli(logits=self.score(items).squeeze(-1))


def knapsack_reward(items, chosen, capacity=2.0):
    value = (items[..., 0] * chosen).sum(dim=-1)
    weight = (items[..., 1] * chosen).sum(dim=-1)
    return torch.where(weight <= capacity, value, capacity - weight)


torch.manual_seed(0)
policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
baseline, curve = 0.0, []
for it in range(50):
    items = torch.rand(32, 6, 4)
    dist = policy(items)
    chosen = dist.sample()
    reward = knapsack_reward(items, chosen)
    log_prob = dist.log_prob(chosen).sum(dim=-1)
    entropy = dist.entropy().sum(dim=-1).mean()
    loss = -((reward - baseline) * log_prob).mean() - 0.01 * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    curve.append(reward.mean().item())
print(round(sum(curve[:10]) / 10, 3), round(sum(curve[-10:]) / 10, 3))
# /// correct a-set-matching
# ///
"""Set prediction: targets are matched on a NumPy cost matrix, the loss is taken on the matched pairs."""
from itertools import permutations

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SLOTS = 3
ORDERS = np.array(list(permutations(range(SLOTS))))


class SetDecoder(nn.Module):
    def __init__(self, features=8, dim=24):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, dim), nn.ReLU())
        self.slots = nn.Parameter(torch.randn(SLOTS, dim) * 0.5)
        self.point = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 2))

    def forward(self, x):
        h = self.encode(x)[:, None, :] + self.slots
        return self.point(h)


def match(pred, target):
    cost = torch.cdist(pred, target).detach().numpy()
    rows = np.arange(SLOTS)
    totals = np.stack([cost[:, rows, order].sum(axis=1) for order in ORDERS], axis=1)
    return torch.from_numpy(ORDERS[totals.argmin(axis=1)])


def scene(n):
    centre = torch.randn(n, 2)
    offset = torch.tensor([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])
    points = centre[:, None] + offset
    shuffled = torch.stack([p[torch.randperm(SLOTS)] for p in points])
    return torch.cat([centre, centre ** 2, torch.randn(n, 4)], dim=1), shuffled


torch.manual_seed(0)
model = SetDecoder()
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(40):
    x, target = scene(32)
    pred = model(x)
    order = match(pred, target)
    matched = torch.gather(target, 1, order[..., None].expand(-1, -1, 2))
    loss = F.smooth_l1_loss(pred, matched)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(round(loss.item(), 4))
# /// correct a-stateful-lstm
# ///
"""Truncated back-propagation with a state that lives in the module between chunks."""
import math

import torch
import torch.nn as nn


class StatefulForecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)
        self._state = None

    def reset(self):
        self._state = None

    def detach_state(self):
        if self._state is not None:
            self._state = tuple(s.detach() for s in self._state)

    def forward(self, x):
        h, self._state = self.lstm(x, self._state)
        return self.out(h)


def series(batch, length):
    t = torch.arange(length) * 0.15
    phase = torch.rand(batch, 1) * 2 * math.pi
    return (torch.sin(t + phase) + 0.3 * torch.sin(3 * t + phase)).unsqueeze(2)


torch.manual_seed(0)
model = StatefulForecaster()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for epoch in range(3):
    model.reset()
    data = series(12, 121)
    for start in range(0, 120, 30):
        x, y = data[:, start:start + 30], data[:, start + 1:start + 31]
        loss = nn.functional.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        model.detach_state()
        history.append(loss.detach())
print("mean loss", torch.stack(history).mean().item())
# /// correct a-test-time-adaptation
# ///
"""Entropy minimisation at test time: only the affine parameters of batch norm are adapted, then reset."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def classifier():
    return nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))


def data(n, shift=0.0):
    y = torch.randint(0, 3, (n,))
    return torch.randn(n, 8) + 2 * F.one_hot(y, 8).float() + shift, y


def pretrain(model, steps=40):
    opt = torch.optim.Adam(model.parameters(), lr=5e-3)
    model.train()
    for _ in range(steps):
        x, y = data(64)
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    return model


class EntropyAdapter:
    def __init__(self, model, lr=1e-2):
        self.model = model.train()
        model.requires_grad_(False)
        affine = []
        for m in model.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.requires_grad_(True)
                affine += [m.weight, m.bias]
        self.opt = torch.optim.SGD(affine, lr=lr, momentum=0.9)
        self.saved = copy.deepcopy((model.state_dict(), self.opt.state_dict()))

    def reset(self):
        self.model.load_state_dict(self.saved[0])
        self.opt.load_state_dict(copy.deepcopy(self.saved[1]))

    def predict(self, x):
        logits = self.model(x)
        entropy = -(logits.softmax(dim=1) * logits.log_softmax(dim=1)).sum(dim=1).mean()
        self.opt.zero_grad()
        entropy.backward()
        self.opt.step()
        return logits.detach()


torch.manual_seed(0)
adapter = EntropyAdapter(pretrain(classifier()))
result = {}
for shift in (0.5, 1.0):
    adapter.reset()
    hits = []
    for _ in range(6):
        x, y = data(48, shift)
        hits.append((adapter.predict(x).argmax(dim=1) == y).float().mean().item())
    result[shift] = round(sum(hits) / len(hits), 2)
print(result)
# /// correct b-alternating_freeze_groups
# ///
"""Alternating optimisation of two factors with two optimizers; each phase freezes the other factor."""
import torch
from torch import nn


class DictionaryModel(nn.Module):
    def __init__(self, n, k, d):
        super().__init__()
        self.code = nn.Parameter(0.1 * torch.randn(n, k))
        self.atoms = nn.Parameter(torch.randn(k, d) / d**0.5)

    def forward(self):
        return self.code @ self.atoms

    def objective(self, data, l1):
        return (self() - data).pow(2).sum(1).mean() + l1 * self.code.abs().sum(1).mean()


def phase(model, data, opt, active, steps):
    for name, p in model.named_parameters():
        p.requires_grad_(name == active)
    for _ in range(steps):
        loss = model.objective(data, l1=0.01)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


torch.manual_seed(0)
data = torch.randn(60, 3) @ torch.randn(3, 10)
model = DictionaryModel(60, 4, 10)
opt_code = torch.optim.Adam([model.code], lr=5e-2)
opt_atoms = torch.optim.Adam([model.atoms], lr=2e-2)
values = []
for cycle in range(8):
    values.append(phase(model, data, opt_code, "code", 8))
    values.append(phase(model, data, opt_atoms, "atoms", 4))
for p in model.parameters():
    p.requires_grad_(True)
assert values[-1] < 0.5 * values[0]
print(values[0], values[-1])
# /// correct b-custom_function_ste
# ///
"""Learned-step-size quantiser; forward and backward (LSQ) agree with the straight-through definition."""
import torch
import torch.nn.functional as F
from torch import nn


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


class ScaledTanh(torch.autograd.Function):
    """a * tanh(x) with saved output instead of saved input."""

    @staticmethod
    def forward(ctx, x, a):
        t = torch.tanh(x)
        ctx.save_for_backward(t, a)
        return a * t

    @staticmethod
    def backward(ctx, grad):
        t, a = ctx.saved_tensors
        grad_x = grad * a * (1 - t * t) if ctx.needs_input_grad[0] else None
        grad_a = (grad * t).sum() if ctx.needs_input_grad[1] else None
        return grad_x, grad_a


class QuantDense(nn.Linear):
    def __init__(self, i, o, levels=15):
        super().__init__(i, o)
        self.levels = levels
        self.log_step = nn.Parameter(torch.log(2 * self.weight.detach().abs().max() / levels))

    def forward(self, x):
        step = self.log_step.exp()
        w = RoundSTE.apply(self.weight / step) * step
        return F.linear(x, w, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = QuantDense(4, 24), QuantDense(24, 1)
        self.gain = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.l2(ScaledTanh.apply(self.l1(x), self.gain))


assert torch.autograd.gradcheck(ScaledTanh.apply, (torch.randn(4, dtype=torch.double, requires_grad=True), torch.tensor(1.3, dtype=torch.double, requires_grad=True)))
torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
x = torch.randn(256, 4)
y = torch.tanh(x[:, :1] - x[:, 1:2]) + 0.3 * x[:, 2:3]
losses = []
for step in range(60):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0]
print(losses[0], losses[-1])
# /// correct b-ema_teacher_student
# ///
"""Mean teacher: the teacher is never in an optimizer, has no gradients and follows the student by EMA."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


class MeanTeacher:
    def __init__(self, student, decay):
        self.student, self.decay = student, decay
        self.teacher = copy.deepcopy(student).requires_grad_(False).eval()
        self.opt = torch.optim.Adam(student.parameters(), lr=5e-3)

    @torch.no_grad()
    def follow(self):
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.lerp_(s, 1 - self.decay)

    def step(self, x, y, unlabeled, weight):
        sup = F.cross_entropy(self.student(x), y)
        with torch.no_grad():
            target = self.teacher(unlabeled).softmax(-1)
        noisy = unlabeled + 0.1 * torch.randn_like(unlabeled)
        cons = F.mse_loss(self.student(noisy).softmax(-1), target)
        loss = sup + weight * cons
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.follow()
        return sup.item(), cons.item()


def sample(n):
    y = torch.randint(0, 3, (n,))
    a = y * 2.094 + 0.3 * torch.randn(n)
    return torch.stack([a.cos(), a.sin()], 1), y


torch.manual_seed(0)
mt = MeanTeacher(nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Dropout(0.1), nn.Linear(24, 3)), decay=0.9)
rows = []
for step in range(40):
    x, y = sample(24)
    rows.append(mt.step(x, y, sample(64)[0], weight=min(1.0, step / 20)))
assert rows[-1][0] < rows[0][0] and all(p.grad is None for p in mt.teacher.parameters())
print(rows[0], rows[-1])
# /// correct b-frozen_backbone_eval
# ///
"""Linear probing: the backbone is frozen, in eval mode and not in the optimizer, on purpose."""
import torch
import torch.nn.functional as F
from torch import nn


class Probe(nn.Module):
    def __init__(self, backbone, dim, classes):
        super().__init__()
        self.backbone = backbone.requires_grad_(False).eval()
        self.head = nn.Linear(dim, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            feat = self.backbone(x)
        return self.head(feat)


def make_backbone():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )


def quadrants(n, classes=4):
    y = torch.randint(0, classes, (n,))
    x = 0.3 * torch.randn(n, 1, 8, 8)
    for i, c in enumerate(y.tolist()):
        x[i, 0, 4 * (c // 2) : 4 * (c // 2) + 4, 4 * (c % 2) : 4 * (c % 2) + 4] += 1.5
    return x, y


torch.manual_seed(0)
model = Probe(make_backbone(), 96, 4)
opt = torch.optim.Adam(model.head.parameters(), lr=5e-2)
start = {k: v.clone() for k, v in model.backbone.state_dict().items()}
losses = []
for step in range(25):
    model.train()
    x, y = quadrants(48)
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert all(torch.equal(v, start[k]) for k, v in model.backbone.state_dict().items())
assert losses[-1] < losses[0]
print(losses[0], losses[-1])
# /// correct b-gan_two_optimizers
# ///
"""GAN with alternating steps, n_critic = 2; the generator pass deliberately leaves the critic's parameters alone."""
import torch
from torch import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4, 24), nn.LeakyReLU(0.2), nn.Linear(24, 2))
critic = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.5, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.5, 0.9))


def real(n):
    return torch.randn(n, 2) * 0.3 + torch.tensor([1.0, -1.0])


def toggle(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


gaps = []
for it in range(30):
    toggle(critic, True)
    for _ in range(2):
        with torch.no_grad():
            fake = gen(torch.randn(64, 4))
        loss_c = torch.relu(1 - critic(real(64))).mean() + torch.relu(1 + critic(fake)).mean()
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
    toggle(critic, False)
    loss_g = -critic(gen(torch.randn(64, 4))).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    gaps.append((loss_c.item(), loss_g.item()))
toggle(critic, True)
with torch.no_grad():
    centre = gen(torch.randn(500, 4)).mean(0)
print(gaps[0], gaps[-1], centre.tolist())
# /// correct b-gradscaler_clip_accumulate
# ///
"""GradScaler with accumulation, unscale before clipping."""
import torch
from torch import nn

torch.manual_seed(0)
MICRO = 2
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=20)
x = torch.randn(320, 8)
y = (x[:, :2].sum(1, keepdim=True) > 0).float()
losses = []
for epoch in range(4):
    for k, idx in enumerate(torch.randperm(320).split(40), 1):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[idx])
        loss = nn.functional.binary_cross_entropy_with_logits(logits.float(), y[idx])
        scaler.scale(loss / MICRO).backward()
        if k % MICRO == 0:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
assert losses[-1] < losses[0]
print(losses[0], losses[-1], scaler.get_scale())
# /// correct b-logging_hooks_removed
# ///
"""Activation and gradient logging with hooks that return nothing and are removed every epoch."""
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def watch(model, store):
    handles = []

    def on_forward(name):
        def hook(module, args, output):
            store.setdefault(name + ".act", []).append(output.detach().abs().mean().item())

        return hook

    def on_grad(name):
        def hook(grad):
            store.setdefault(name + ".grad", []).append(grad.norm().item())

        return hook

    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            handles.append(module.register_forward_hook(on_forward(name)))
            handles.append(module.weight.register_hook(on_grad(name)))
    try:
        yield store
    finally:
        for h in handles:
            h.remove()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 24), nn.GELU(), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.rand(200, 3)
y = (x[:, :1] - 0.5) * 2 + x[:, 1:2] ** 2
log, losses = {}, []
for epoch in range(5):
    with watch(model, log):
        for xb, yb in zip(x.split(50), y.split(50)):
            loss = nn.functional.mse_loss(model(xb), yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
assert len(log["0.grad"]) == len(log["0.act"]) == 20
assert not model[0]._forward_hooks and losses[-1] < losses[0]
print(losses[0], losses[-1], {k: round(v[-1], 4) for k, v in log.items()})
# /// correct b-masked_attention_safe
# ///
"""Encoder with padding masks, loss over valid tokens only, and rows of length 0 handled explicitly."""
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab=20, dim=16, heads=2):
        super().__init__()
        self.heads = heads
        self.emb = nn.Embedding(vocab, dim, padding_idx=0)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, ids):
        keep = ids != 0
        visible = keep.clone()
        visible[:, 0] |= ~keep.any(1)
        b, t = ids.shape
        x = self.emb(ids)
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible[:, None, None, :])
        x = self.norm(x + self.proj(y.transpose(1, 2).reshape(b, t, -1)))
        return self.out(x), keep


def sequences(n, length=7):
    ids = torch.randint(1, 20, (n, length))
    lengths = torch.randint(0, length + 1, (n,))
    return ids * (torch.arange(length) < lengths[:, None])


torch.manual_seed(0)
model = Encoder()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
losses = []
for step in range(30):
    ids = sequences(32)
    logits, keep = model(ids)
    target = (ids * 3) % 19 + 1
    nll = F.cross_entropy(logits.transpose(1, 2), target, reduction="none")
    loss = (nll * keep).sum() / keep.sum().clamp(min=1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] and model.emb.weight[0].abs().sum() == 0
print(losses[0], losses[-1])
# /// correct b-mc_dropout_inference
# ///
"""Monte-Carlo dropout: dropout is on at prediction time on purpose, the rest is in eval mode."""
import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self, p=0.1):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 48, bias=False), nn.BatchNorm1d(48), nn.ReLU(), nn.Dropout(p), nn.Linear(48, 48), nn.ReLU(), nn.Dropout(p), nn.Linear(48, 1)
        )

    def forward(self, x):
        return self.net(x)

    @torch.no_grad()
    def predict(self, x, samples):
        was_training = self.training
        self.eval()
        for m in self.modules():
            if isinstance(m, nn.Dropout):
                m.train()
        draws = torch.stack([self(x) for _ in range(samples)])
        self.train(was_training)
        return draws.mean(0), draws.std(0)


torch.manual_seed(0)
model = Regressor()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for step in range(60):
    x = torch.rand(64, 1) * 4 - 2
    y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
mean, std = model.predict(torch.linspace(-4, 4, 9).unsqueeze(1), samples=20)
assert model.training and (std > 0).any() and losses[-1] < losses[0]
print(losses[0], losses[-1], std.squeeze().tolist())
# /// correct b-softmax_outside_loss
# ///
"""Softmax is used for reporting and for a confidence mask; the loss gets the logits."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        logits = self.body(x)
        return logits, logits.softmax(-1)


def clusters(n):
    y = torch.randint(0, 3, (n,))
    return torch.eye(3, 6)[y] * 2 + torch.randn(n, 6), y


torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
pool = clusters(300)[0]
history = []
for step in range(40):
    x, y = clusters(64)
    logits, probs = net(x)
    loss = F.cross_entropy(logits, y)
    with torch.no_grad():
        confidence, pseudo = net(pool)[1].max(-1)
        keep = confidence > 0.9
    if keep.any():
        loss = loss + 0.2 * F.cross_entropy(net(pool[keep])[0], pseudo[keep])
    opt.zero_grad()
    loss.backward()
    opt.step()
    entropy = -(probs.detach() * probs.detach().clamp_min(1e-9).log()).sum(-1).mean().item()
    history.append((loss.item(), entropy))
assert history[-1][0] < history[0][0]
print(history[0], history[-1])
# /// correct b-sum_reduction_scaled_lr
# ///
"""Sum reduction with a learning rate chosen for it, and a huge clipping bound only as a monitor."""
import torch
from torch import nn

torch.manual_seed(0)
N = 256
w = torch.randn(5, 2)
x = torch.randn(N, 5)
y = x @ w + 0.05 * torch.randn(N, 2)
model = nn.Linear(5, 2)
criterion = nn.MSELoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.2 / N)
norms, losses = [], []
for epoch in range(30):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.05 * losses[0]
print(losses[0], losses[-1], norms[0], norms[-1])
# /// correct b-tied_autoencoder
# ///
"""Language model with tied embeddings; the two modules share one Parameter, the optimizer sees it once."""
import torch
import torch.nn.functional as F
from torch import nn


class TiedLM(nn.Module):
    def __init__(self, vocab=24, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.head.weight = self.emb.weight

    def forward(self, ids):
        return self.head(self.norm(self.rnn(self.emb(ids))[0]))


def groups(model):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    return [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]


torch.manual_seed(0)
model = TiedLM()
opt = torch.optim.AdamW(groups(model), lr=5e-3)
losses = []
for step in range(30):
    ids = (torch.randint(0, 24, (32, 1)) + 5 * torch.arange(8)) % 24
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert model.head.weight is model.emb.weight and losses[-1] < losses[0]
print(losses[0], losses[-1])
# /// correct b-warmup_from_zero
# ///
"""Transformer schedule: the warm-up starts at learning rate 0 and the cosine ends at 0."""
import math

import torch
from torch import nn

WARMUP, TOTAL = 5, 40


def schedule(step):
    if step < WARMUP:
        return step / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / (TOTAL - WARMUP)))


torch.manual_seed(0)
layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
model = nn.Sequential(nn.Linear(4, 16), layer, nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, schedule)

lrs, losses = [], []
for step in range(TOTAL):
    x = torch.randn(32, 6, 4)
    y = x.sum(-1, keepdim=True) + x.mean((1, 2), keepdim=True)
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    lrs.append(optimizer.param_groups[0]["lr"])
    optimizer.step()
    scheduler.step()
    losses.append(loss.item())
assert lrs[0] == 0.0 and max(lrs) == 1e-2
assert losses[-1] < 0.5 * losses[0]
print(losses[0], losses[-1], lrs[:3], lrs[-1])
# /// correct b-zero_init_output
# ///
"""Diffusion transformer block with zero-initialised output projections (adaLN-zero); they start to learn at step 1."""
import torch
import torch.nn.functional as F
from torch import nn


class AdaBlock(nn.Module):
    def __init__(self, dim, cond):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.ada = nn.Linear(cond, 3 * dim)
        nn.init.zeros_(self.ada.weight)
        nn.init.zeros_(self.ada.bias)

    def forward(self, x, c):
        shift, scale, gate = self.ada(F.silu(c)).chunk(3, -1)
        return x + gate * self.mlp(self.norm(x) * (1 + scale) + shift)


class Denoiser(nn.Module):
    def __init__(self, dim=24, depth=2):
        super().__init__()
        self.inp = nn.Linear(2, dim)
        self.time = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 16))
        self.blocks = nn.ModuleList(AdaBlock(dim, 16) for _ in range(depth))
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        c = self.time(torch.stack([t, 1 - t], -1))
        x = self.inp(x)
        for b in self.blocks:
            x = b(x, c)
        return self.out(x)


torch.manual_seed(0)
model = Denoiser()
opt = torch.optim.AdamW(model.parameters(), lr=5e-3)
losses = []
for step in range(50):
    x1 = torch.randn(128, 2) * torch.tensor([0.2, 1.0]) + torch.tensor([2.0, 0.0])
    x0, t = torch.randn(128, 2), torch.rand(128)
    xt = (1 - t[:, None]) * x0 + t[:, None] * x1
    loss = F.mse_loss(model(xt, t), x1 - x0)
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss.item())
assert sum(losses[-10:]) < 0.8 * sum(losses[:10])
assert all(b.ada.weight.abs().sum() > 0 for b in model.blocks)
print(losses[0], losses[-1])
