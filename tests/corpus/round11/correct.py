# /// correct accumulated-tokens
# families = ["accumulation", "function", "optimizer", "scale"]
# resembles = "several backward passes per step, zero_grad after the step, last group smaller"
# ///
import torch
from torch import nn
import torch.nn.functional as F

PAD = -100


def reversed_sequences(n, vocab=10):
    lengths = torch.randint(3, 9, (n,))
    src = torch.randint(1, vocab, (n, 8))
    tgt = torch.full((n, 8), PAD)
    for i, k in enumerate(lengths.tolist()):
        tgt[i, :k] = src[i, :k].flip(0)
        src[i, k:] = 0
    return src, tgt


class Reverser(nn.Module):
    def __init__(self, vocab=10, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.query = nn.Parameter(torch.randn(8, dim) * 0.1)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True, kdim=2 * dim, vdim=2 * dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src):
        memory, _ = self.rnn(self.embed(src))
        length = (src > 0).sum(1)
        where = (length[:, None] - 1 - torch.arange(8)).clamp(min=0)
        query = self.query[where]
        mixed, _ = self.attn(query, memory, memory, key_padding_mask=src.eq(0), need_weights=False)
        return self.out(mixed + query)


def grouped(batches, k):
    group = []
    for b in batches:
        group.append(b)
        if len(group) == k:
            yield group
            group = []
    if group:
        yield group


def train_epoch(model, optimizer, src, tgt, micro=16, accumulate=4):
    model.train()
    seen, total = 0, 0.0
    for group in grouped(torch.randperm(len(src)).split(micro), accumulate):
        tokens = sum((tgt[idx] != PAD).sum().item() for idx in group)
        for idx in group:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(src[idx])
            loss = F.cross_entropy(logits.float().flatten(0, 1), tgt[idx].flatten(), ignore_index=PAD, reduction="sum")
            (loss / tokens).backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seen += tokens
    return total / seen


torch.manual_seed(55)
torch.set_num_threads(1)
src, tgt = reversed_sequences(300)
model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    loss = train_epoch(model, optimizer, src, tgt)
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss per token {loss:.4f}")
# /// correct adapter-merge-eval
# families = ["flags", "in-place", "optimizer"]
# resembles = "zero gradients in the first step (b is 0), frozen weights that are changed in place"
# ///
import math
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


class Adapter(nn.Module):
    """A frozen linear layer with a low-rank correction, which can be folded into it for serving."""

    def __init__(self, base, rank, alpha, dropout=0.05):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale, self.dropout = alpha / rank, nn.Dropout(dropout)
        self.merged = False

    @torch.no_grad()
    def fold(self, sign):
        self.base.weight.add_(self.b @ self.a, alpha=sign * self.scale)
        self.merged = sign > 0

    def forward(self, x):
        if self.merged:
            return self.base(x)
        return self.base(x) + self.scale * F.linear(F.linear(self.dropout(x), self.a), self.b)


def adapters(model):
    return [module for module in model.modules() if isinstance(module, Adapter)]


@contextmanager
def served(model):
    was_training = model.training
    model.eval()
    for adapter in adapters(model):
        adapter.fold(+1)
    try:
        with torch.inference_mode():
            yield model
    finally:
        for adapter in adapters(model):
            adapter.fold(-1)
        model.train(was_training)


def adapt(model, rank=3, alpha=6):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, Adapter(child, rank, alpha))
    return model


def perceptron(features=10, hidden=40, classes=3):
    return nn.Sequential(nn.Linear(features, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                         nn.Linear(hidden, classes))


def tickets(count, rotation):
    x = torch.randn(count, 10)
    score = torch.stack([x @ rotation[:, 0], (x @ rotation[:, 1]).abs() - 0.8, x @ rotation[:, 2]], dim=1)
    return x, score.argmax(1)


def train(model, data, steps, lr, evaluate=None):
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=lr)
    x, y = data
    model.train()
    for step in range(steps):
        rows = torch.randint(0, len(y), (64,))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        if evaluate and step % 50 == 49:
            evaluate(step + 1)


torch.manual_seed(38)
rotation, _ = torch.linalg.qr(torch.randn(10, 10))
model = perceptron()
train(model, tickets(2000, rotation), steps=200, lr=3e-3)
customer = rotation + 0.25 * torch.randn(10, 10)
test_x, test_y = tickets(500, customer)


def report(step):
    with served(model):
        print(f"step {step} accuracy {model(test_x).argmax(1).eq(test_y).float().mean().item():.3f}")


adapt(model)
print("trainable", sum(p.numel() for p in model.parameters() if p.requires_grad))
report(0)
train(model, tickets(400, customer), steps=150, lr=5e-3, evaluate=report)
# /// correct adjoint-ode
# families = ["function", "graph-break"]
# resembles = "no_grad forward in a custom Function whose backward builds the graph again"
# ///
import torch
from torch import nn


def rk4(f, z, t, h):
    k1 = f(t, z)
    k2 = f(t + h / 2, z + h / 2 * k1)
    k3 = f(t + h / 2, z + h / 2 * k2)
    k4 = f(t + h, z + h * k3)
    return z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


class CheckpointedSolve(torch.autograd.Function):
    """Keeps the states on the grid only, and builds each step's graph again in the backward pass."""

    @staticmethod
    def forward(ctx, field, times, z0, *parameters):
        states = [z0]
        with torch.no_grad():
            for t, following in zip(times[:-1], times[1:]):
                states.append(rk4(field, states[-1], t, following - t))
        ctx.field, ctx.times = field, times
        ctx.save_for_backward(*states)
        ctx.parameters = parameters
        return torch.stack(states)

    @staticmethod
    def backward(ctx, grad_path):
        states, parameters = ctx.saved_tensors, ctx.parameters
        adjoint = grad_path[-1]
        totals = [torch.zeros_like(p) for p in parameters]
        for k in reversed(range(len(states) - 1)):
            with torch.enable_grad():
                z = states[k].detach().requires_grad_()
                step = rk4(ctx.field, z, ctx.times[k], ctx.times[k + 1] - ctx.times[k])
            adjoint, *pieces = torch.autograd.grad(step, (z, *parameters), adjoint)
            totals = [total + piece for total, piece in zip(totals, pieces)]
            adjoint = adjoint + grad_path[k]
        return (None, None, adjoint, *totals)


class VectorField(nn.Module):
    def __init__(self, dim=2, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, hidden), nn.Tanh(), nn.Linear(hidden, dim))
        self.damping = nn.Parameter(torch.tensor(0.0))
        self.evaluations = 0

    def forward(self, t, z):
        self.evaluations += 1
        return self.net(z) - self.damping * z


class NeuralODE(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field

    def forward(self, z0, times):
        return CheckpointedSolve.apply(self.field, times, z0, *self.field.parameters())


def spiral(t, z):
    turn = torch.tensor([[-0.15, 2.0], [-2.0, -0.15]])
    return z.pow(3) @ turn.T


@torch.no_grad()
def reference_path(z0, times):
    path = [z0]
    for t, following in zip(times[:-1], times[1:]):
        path.append(rk4(spiral, path[-1], t, following - t))
    return torch.stack(path)


torch.manual_seed(20)
times = torch.linspace(0, 1.5, 16)
starts = torch.randn(24, 2).clamp(-1.2, 1.2)
observed = reference_path(starts, times)
model = NeuralODE(VectorField())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
curve = []
for iteration in range(70):
    window = torch.randint(0, 10, (1,)).item()
    piece = slice(window, window + 6)
    path = model(observed[window], times[piece])
    loss = (path - observed[piece]).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
with torch.no_grad():
    error = (model(starts, times) - observed).abs().mean().item()
print(f"loss {curve[0]:.4f} -> {curve[-1]:.4f}, whole path {error:.4f}, {model.field.evaluations} evaluations")
# /// correct burgers-inverse
# families = ["higher-order", "leaf"]
# resembles = "second derivatives, LBFGS closure that clears gradients, a parameter outside of the network"
# ///
import math

import torch
from torch import nn
from torch.autograd import grad


class Wave(nn.Module):
    """u(x, t) for the viscous Burgers equation, with the viscosity as an unknown."""

    def __init__(self, hidden=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.log_viscosity = nn.Parameter(torch.tensor(math.log(0.05)))

    def forward(self, x, t):
        return self.net(torch.stack([x, t], -1)).squeeze(-1)

    def residual(self, x, t):
        x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
        u = self(x, t)
        u_x, u_t = grad(u.sum(), (x, t), create_graph=True)
        u_xx, = grad(u_x.sum(), x, create_graph=True)
        return u_t + u * u_x - self.log_viscosity.exp() * u_xx


def travelling_front(x, t, viscosity=0.2, left=1.0, right=0.0):
    speed = 0.5 * (left + right)
    return speed - 0.5 * (left - right) * torch.tanh((left - right) * (x - speed * t) / (4 * viscosity))


class InverseProblem:
    def __init__(self, sensors=100, collocation=100, noise=0.002):
        self.x = torch.rand(sensors) * 4 - 2
        self.t = torch.rand(sensors)
        self.u = travelling_front(self.x, self.t) + noise * torch.randn(sensors)
        self.collocation = torch.rand(collocation) * 4 - 2, torch.rand(collocation)

    def loss(self, wave):
        data = (wave(self.x, self.t) - self.u).square().mean()
        physics = wave.residual(*self.collocation).square().mean()
        return 20 * data + physics


def warm_up(wave, problem, steps):
    optimizer = torch.optim.Adam([
        {"params": wave.net.parameters(), "lr": 1e-2},
        {"params": [wave.log_viscosity], "lr": 2e-2},
    ])
    for _ in range(steps):
        optimizer.zero_grad()
        loss = problem.loss(wave)
        loss.backward()
        optimizer.step()
    return loss.item()


def polish(wave, problem, rounds):
    optimizer = torch.optim.LBFGS(wave.parameters(), max_iter=15, history_size=12, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = problem.loss(wave)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(rounds)]


torch.manual_seed(85)
problem, wave = InverseProblem(), Wave()
warm = warm_up(wave, problem, steps=200)
curve = polish(wave, problem, rounds=8)
wave.eval()
x = torch.linspace(-2, 2, 50)
with torch.no_grad():
    error = (wave(x, torch.full_like(x, 0.5)) - travelling_front(x, torch.full_like(x, 0.5))).abs().max().item()
print(f"loss {warm:.5f} -> {curve[-1]:.6f}")
print(f"viscosity {wave.log_viscosity.exp().item():.4f} of 0.2, largest error {error:.4f}")
# /// correct byol-clouds
# families = ["graph-break", "in-place"]
# resembles = "a teacher without gradients that is changed in place, stop-gradient targets"
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F


class PointEncoder(nn.Module):
    def __init__(self, width=32, out=16):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.project = nn.Sequential(nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, out))

    def features(self, cloud):
        return self.point(cloud).amax(1)

    def forward(self, cloud):
        return self.project(self.features(cloud))


class BYOL(nn.Module):
    def __init__(self, encoder, out=16, momentum=0.97):
        super().__init__()
        self.online = encoder
        self.teacher = copy.deepcopy(encoder)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.predict = nn.Sequential(nn.Linear(out, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, out))
        self.momentum = momentum

    def forward(self, first, second):
        loss = 0.0
        for a, b in ((first, second), (second, first)):
            predicted = self.predict(self.online(a))
            with torch.no_grad():
                wanted = self.teacher(b)
            loss = loss + 2 - 2 * F.cosine_similarity(predicted, wanted.detach(), dim=-1).mean()
        return loss

    @torch.no_grad()
    def advance_teacher(self):
        for slow, fast in zip(self.teacher.parameters(), self.online.parameters()):
            slow.mul_(self.momentum).add_(fast, alpha=1 - self.momentum)
        for slow, fast in zip(self.teacher.buffers(), self.online.buffers()):
            slow.copy_(fast)


def shapes(count, points=48):
    kind = torch.randint(3, (count,))
    sphere = F.normalize(torch.randn(count, points, 3), dim=-1)
    cube = torch.rand(count, points, 3) * 2 - 1
    face = cube / cube.abs().amax(-1, keepdim=True)
    disc = sphere * torch.tensor([1.0, 1.0, 0.05])
    return torch.where((kind == 0)[:, None, None], sphere, torch.where((kind == 1)[:, None, None], face, disc)), kind


def augment(cloud):
    angle = torch.rand(len(cloud)) * 6.283
    c, s, o, l = angle.cos(), angle.sin(), torch.zeros(len(cloud)), torch.ones(len(cloud))
    turn = torch.stack([c, -s, o, s, c, o, o, o, l], 1).view(-1, 3, 3)
    scale = 0.8 + 0.4 * torch.rand(len(cloud), 1, 1)
    return scale * cloud @ turn + 0.02 * torch.randn_like(cloud)


def probe(encoder, clouds, labels, steps=60):
    encoder.eval()
    with torch.no_grad():
        frozen = encoder.features(clouds)
    head = nn.Linear(frozen.size(1), 3)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(head(frozen), labels).backward()
        optimizer.step()
    return (head(frozen).argmax(1) == labels).float().mean().item()


torch.manual_seed(38)
clouds, labels = shapes(192)
learner = BYOL(PointEncoder())
optimizer = torch.optim.AdamW((p for p in learner.parameters() if p.requires_grad), lr=3e-3, weight_decay=1e-3)
curve = []
for epoch in range(12):
    for index in torch.randperm(len(clouds)).split(48):
        loss = learner(augment(clouds[index]), augment(clouds[index]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        learner.advance_teacher()
    curve.append(loss.item())
print(f"similarity loss {curve[0]:.3f} -> {curve[-1]:.3f}, linear probe {probe(learner.online, clouds, labels):.3f}")
# /// correct corridor-dqn
# families = ["graph-break", "optimizer"]
# resembles = "target network never in the optimizer, targets under no_grad"
# ///
import copy
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward next_state done")


class Corridor:
    """Walk right to the goal; 1-hot position."""

    def __init__(self, length=6):
        self.length = length

    def reset(self):
        self.pos, self.t = 0, 0
        return self.obs()

    def obs(self):
        return F.one_hot(torch.tensor(self.pos), self.length).float()

    def step(self, action):
        self.t += 1
        self.pos = max(0, min(self.length - 1, self.pos + (1 if action == 1 else -1)))
        goal = self.pos == self.length - 1
        return self.obs(), (1.0 if goal else -0.02), goal or self.t >= 30, goal


class Agent:
    def __init__(self, n_obs, n_actions, gamma=0.95, sync_every=50):
        self.q = nn.Sequential(nn.Linear(n_obs, 32), nn.ReLU(), nn.Linear(32, n_actions))
        self.q_target = copy.deepcopy(self.q)
        self.q_target.requires_grad_(False)
        self.gamma, self.sync_every, self.n_actions = gamma, sync_every, n_actions
        self.optimizer = torch.optim.Adam(self.q.parameters(), lr=3e-3)
        self.memory = deque(maxlen=2000)
        self.updates = 0

    def act(self, state, eps):
        if random.random() < eps:
            return random.randrange(self.n_actions)
        with torch.no_grad():
            return self.q(state).argmax().item()

    def learn(self, batch_size=32):
        if len(self.memory) < batch_size:
            return None
        batch = Transition(*zip(*random.sample(self.memory, batch_size)))
        state, next_state = torch.stack(batch.state), torch.stack(batch.next_state)
        action = torch.tensor(batch.action)
        reward, done = torch.tensor(batch.reward), torch.tensor(batch.done, dtype=torch.float32)
        value = self.q(state).gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.q(next_state).argmax(1, keepdim=True)
            target = reward + self.gamma * (1 - done) * self.q_target(next_state).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(value, target)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.q.parameters(), 10.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.sync_every == 0:
            self.q_target.load_state_dict(self.q.state_dict())
        return loss.item()


random.seed(5)
torch.manual_seed(5)
torch.set_num_threads(1)
env, agent = Corridor(), Agent(6, 2)
lengths = []
for episode in range(35):
    state, finished = env.reset(), False
    while not finished:
        action = agent.act(state, eps=max(0.05, 1 - episode / 20))
        next_state, reward, finished, goal = env.step(action)
        agent.memory.append(Transition(state, action, reward, next_state, goal))
        loss = agent.learn()
        state = next_state
    lengths.append(env.t)
print("steps per episode", sum(lengths[:5]) / 5, "->", sum(lengths[-5:]) / 5)
# /// correct dann-accents
# families = ["data", "function", "loss"]
# resembles = "sign-flipped custom backward (gradient reversal), domain labels of unlabelled data"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class AccentInvariantClassifier(nn.Module):
    def __init__(self, inputs, words, width=32):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.words = nn.Linear(width, words)
        self.accent = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        features = self.encoder(x)
        return self.words(features), self.accent(ReverseGradient.apply(features, strength)).squeeze(1)


class AccentedWords:
    def __init__(self, words=5, dim=16):
        self.means = torch.randn(words, dim)
        self.accent = 1.5 * torch.randn(dim)

    def __call__(self, count, accented):
        label = torch.randint(len(self.means), (count,))
        x = self.means[label] + 0.8 * torch.randn(count, self.means.size(1))
        return x + self.accent if accented else x, label


def strength_at(progress, ceiling=0.3):
    return ceiling * (2 / (1 + math.exp(-8 * progress)) - 1)


def domain_loss(source_logits, target_logits):
    logits = torch.cat([source_logits, target_logits])
    truth = torch.cat([torch.zeros_like(source_logits), torch.ones_like(target_logits)])
    return F.binary_cross_entropy_with_logits(logits, truth)


torch.manual_seed(23)
draw = AccentedWords()
model = AccentInvariantClassifier(16, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
steps = 250
history = []
for step in range(steps):
    strength = strength_at(step / steps)
    x, y = draw(64, accented=False)
    shifted, _ = draw(64, accented=True)
    word_logits, source = model(x, strength)
    _, target = model(shifted, strength)
    word_loss, accent_loss = F.cross_entropy(word_logits, y), domain_loss(source, target)
    optimizer.zero_grad()
    (word_loss + accent_loss).backward()
    optimizer.step()
    history.append((word_loss.item(), accent_loss.item()))
model.eval()
with torch.no_grad():
    shifted, labels = draw(500, accented=True)
    accuracy = (model(shifted, 0.0)[0].argmax(1) == labels).float().mean().item()
print("word loss {:.3f}, accent loss {:.3f}".format(*history[-1]))
print(f"accuracy on the unlabelled accent {accuracy:.3f}")
# /// correct domain-adversarial
# families = ["function"]
# resembles = "gradient reversal: looks like a wrong custom backward"
# ///
import math
import torch
from torch import nn


class ReverseGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class DANN(nn.Module):
    def __init__(self, d_in=6, hidden=24, classes=2):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(d_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.label_head = nn.Linear(hidden, classes)
        self.domain_head = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, lambd=1.0):
        f = self.features(x)
        return self.label_head(f), self.domain_head(ReverseGrad.apply(f, lambd)).squeeze(1)


def domain(n, shift):
    y = torch.randint(0, 2, (n,))
    x = torch.randn(n, 6)
    x[:, 0] += 3.0 * y - 1.5
    x[:, 1:3] += shift
    return x, y


def schedule(progress):
    return 2.0 / (1.0 + math.exp(-10 * progress)) - 1.0


torch.manual_seed(3)
torch.set_num_threads(1)
model = DANN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
ce, bce = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss()
steps = 200
for step in range(steps):
    xs, ys = domain(32, 0.0)
    xt, _ = domain(32, 2.0)
    class_logits, domain_logits = model(torch.cat([xs, xt]), schedule(step / steps))
    label_loss = ce(class_logits[:32], ys)
    domain_loss = bce(domain_logits, torch.cat([torch.zeros(32), torch.ones(32)]))
    loss = label_loss + domain_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"{step:4d} label {label_loss.item():.3f} domain {domain_loss.item():.3f}")

with torch.no_grad():
    xt, yt = domain(400, 2.0)
    print("target accuracy", (model(xt)[0].argmax(1) == yt).float().mean().item())
# /// correct domain-reversal-credit
# families = ["function", "loss"]
# resembles = "a custom backward with the wrong sign (gradient reversal)"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F


class ReverseGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.strength * grad_output, None


class CreditModel(nn.Module):
    def __init__(self, features, dim=24):
        super().__init__()
        self.extract = nn.Sequential(nn.Linear(features, dim), nn.ReLU(), nn.Linear(dim, dim), nn.ReLU())
        self.default = nn.Linear(dim, 1)
        self.country = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        features = self.extract(x)
        reversed_features = ReverseGradient.apply(features, strength)
        return self.default(features).squeeze(-1), self.country(reversed_features).squeeze(-1)


class StrengthSchedule:
    def __init__(self, total, gamma=8.0, ceiling=1.0):
        self.total, self.gamma, self.ceiling = total, gamma, ceiling

    def __getitem__(self, step):
        return self.ceiling * (2.0 / (1.0 + math.exp(-self.gamma * step / self.total)) - 1.0)


class Portfolio:
    def __init__(self, offset):
        self.offset = offset

    def applicants(self, count):
        x = torch.randn(count, 8)
        x[:, 5:] += self.offset
        risk = x[:, 0] - 0.8 * x[:, 1] + 0.5 * x[:, 2] * x[:, 3]
        return x, torch.bernoulli(torch.sigmoid(1.5 * risk))


def step_losses(model, labelled, unlabelled, strength):
    x, defaulted = labelled
    risk, here = model(x, strength)
    _, there = model(unlabelled, strength)
    domain = torch.cat([here, there])
    origin = torch.cat([torch.zeros_like(here), torch.ones_like(there)])
    return F.binary_cross_entropy_with_logits(risk, defaulted), F.binary_cross_entropy_with_logits(domain, origin)


torch.manual_seed(52)
home, abroad = Portfolio(0.0), Portfolio(1.2)
model = CreditModel(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
schedule = StrengthSchedule(total=200)
for step in range(200):
    task, domain = step_losses(model, home.applicants(64), abroad.applicants(64)[0], schedule[step])
    optimizer.zero_grad()
    (task + 0.3 * domain).backward()
    optimizer.step()
    if step % 50 == 49:
        print(f"step {step + 1} task {task.item():.4f} domain {domain.item():.4f}")
with torch.no_grad():
    x, defaulted = abroad.applicants(1000)
    risk, _ = model(x, 0.0)
    print(f"abroad accuracy {(risk > 0).eq(defaulted.bool()).float().mean().item():.3f}")
# /// correct dose-mc-dropout
# families = ["mode"]
# resembles = "dropout active in eval mode"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class BayesianRegressor(nn.Module):
    """MC dropout; predicts the mean and the log variance."""

    def __init__(self, hidden=48, p=0.1):
        super().__init__()
        self.p = p
        self.fc1 = nn.Linear(1, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.mean = nn.Linear(hidden, 1)
        self.log_var = nn.Linear(hidden, 1)

    def forward(self, x):
        x = F.dropout(torch.relu(self.fc1(x)), self.p, training=True)
        x = F.dropout(torch.relu(self.fc2(x)), self.p, training=True)
        return self.mean(x).squeeze(-1), self.log_var(x).squeeze(-1).clamp(-6, 3)


def response(dose):
    return torch.sin(2 * dose) * (dose < 1.5) + 0.3 * dose


@torch.no_grad()
def predict(model, x, samples=40):
    model.eval()
    draws = [model(x) for _ in range(samples)]
    means = torch.stack([m for m, _ in draws])
    aleatoric = torch.stack([v for _, v in draws]).exp().mean(0)
    return means.mean(0), means.var(0), aleatoric


class Fit:
    def __init__(self, model, lr=5e-3, weight_decay=1e-4):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.loss = nn.GaussianNLLLoss()

    def __call__(self, x, y, epochs):
        self.model.train()
        for epoch in range(epochs):
            for idx in torch.randperm(len(x)).split(40):
                mean, log_var = self.model(x[idx])
                nll = self.loss(mean, y[idx], log_var.exp())
                self.optimizer.zero_grad()
                nll.backward()
                self.optimizer.step()
            if epoch % 20 == 0:
                print(f"epoch {epoch:3d} nll {nll.item():.4f}")


torch.manual_seed(44)
torch.set_num_threads(1)
dose = torch.rand(200, 1) * 2
y = response(dose).squeeze(1) + 0.1 * torch.randn(200)
model = BayesianRegressor()
Fit(model)(dose, y, epochs=60)
grid = torch.linspace(0, 4, 9).unsqueeze(1)
mean, epistemic, aleatoric = predict(model, grid)
for g, m, e, a in zip(grid.flatten().tolist(), mean.tolist(), epistemic.tolist(), aleatoric.tolist()):
    print(f"dose {g:.1f}: {m:+.3f} +- {e ** 0.5:.3f} (model) {a ** 0.5:.3f} (noise)")
# /// correct double-dqn
# families = ["graph-break"]
# resembles = "a target network that never trains, no_grad targets, hard synchronisation with load_state_dict"
# ///
import random
from collections import deque, namedtuple

import torch
from torch import nn
import torch.nn.functional as F

Transition = namedtuple("Transition", "state action reward following alive")


class Corridor:
    """Walk to the right end of a corridor; the left end is a trap."""

    def __init__(self, cells):
        self.cells = cells

    def reset(self):
        self.at = self.cells // 2
        return self.encode()

    def encode(self):
        return F.one_hot(torch.tensor(self.at), self.cells).float()

    def step(self, action):
        self.at += 1 if action == 1 else -1
        if random.random() < 0.1:
            self.at -= 1
        self.at = min(max(self.at, 0), self.cells - 1)
        done = self.at in (0, self.cells - 1)
        return self.encode(), (1.0 if self.at == self.cells - 1 else -0.05), done


class Dueling(nn.Module):
    def __init__(self, inputs, actions, hidden=24):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU())
        self.value, self.gain = nn.Linear(hidden, 1), nn.Linear(hidden, actions)

    def forward(self, state):
        h = self.body(state)
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(-1, keepdim=True)


class Agent:
    def __init__(self, inputs, actions, gamma=0.95, period=50):
        self.online, self.target = Dueling(inputs, actions), Dueling(inputs, actions)
        for p in self.target.parameters():
            p.requires_grad = False
        self.synchronise()
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=1e-3)
        self.actions, self.gamma, self.period, self.updates = actions, gamma, period, 0

    def synchronise(self):
        self.target.load_state_dict(self.online.state_dict())

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(self.actions)
        with torch.no_grad():
            return self.online(state).argmax().item()

    def learn(self, batch):
        state, following = torch.stack(batch.state), torch.stack(batch.following)
        action = torch.tensor(batch.action)[:, None]
        reward, alive = torch.tensor(batch.reward), torch.tensor(batch.alive)
        chosen = self.online(state).gather(1, action).squeeze(1)
        with torch.no_grad():
            best = self.online(following).argmax(1, keepdim=True)
            goal = reward + self.gamma * alive * self.target(following).gather(1, best).squeeze(1)
        loss = F.smooth_l1_loss(chosen, goal)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(self.online.parameters(), 1.0)
        self.optimizer.step()
        self.updates += 1
        if self.updates % self.period == 0:
            self.synchronise()
        return loss.item()


torch.manual_seed(71)
random.seed(71)
env, agent, memory, totals = Corridor(9), Agent(9, 2), deque(maxlen=2000), []
for episode in range(60):
    state, total = env.reset(), 0.0
    for _ in range(30):
        action = agent.act(state, epsilon=max(0.1, 1 - episode / 30))
        following, reward, done = env.step(action)
        memory.append(Transition(state, action, reward, following, 0.0 if done else 1.0))
        state, total = following, total + reward
        if len(memory) >= 64:
            loss = agent.learn(Transition(*zip(*random.sample(memory, 32))))
        if done:
            break
    totals.append(total)
print(f"return {sum(totals[:10]) / 10:.2f} -> {sum(totals[-10:]) / 10:.2f}, last loss {loss:.4f}")
# /// correct dropout-ensemble
# families = ["flags", "graph-break", "loss", "mode"]
# resembles = "dropout in train mode at prediction, frozen batch statistics, mostly frozen backbone, detached weight in the loss"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ResidualBlock(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(rate), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Backbone(nn.Sequential):
    def __init__(self, inputs, width=32, depth=2, rate=0.15):
        super().__init__(nn.Linear(inputs, width), *(ResidualBlock(width, rate) for _ in range(depth)))


class TransferModel(nn.Module):
    """A pre-trained backbone of which only the last block is tuned, with its statistics left alone."""

    def __init__(self, backbone, width=32):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(width, 2))
        self.backbone.requires_grad_(False)
        self.backbone[-1].inner.requires_grad_(True)

    def train(self, mode=True):
        super().train(mode)
        for module in self.backbone.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.eval()
        return self

    def forward(self, x):
        mean, raw = self.head(self.backbone(x)).unbind(-1)
        return mean, F.softplus(raw) + 1e-3


def gaussian_nll(prediction, target, beta=0.5):
    mean, variance = prediction
    terms = 0.5 * (variance.log() + (target - mean).square() / variance)
    return (terms * variance.detach() ** beta).mean()


def predict_with_dropout(model, x, draws):
    """Monte-Carlo dropout: everything in eval mode but the dropout layers."""
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    with torch.no_grad():
        means, variances = map(torch.stack, zip(*(model(x) for _ in range(draws))))
    model.eval()
    return means.mean(0), variances.mean(0), means.var(0)


def pretrain(backbone, steps):
    head = nn.Linear(32, 3)
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=3e-3)
    backbone.train()
    for _ in range(steps):
        x = torch.randn(64, 4)
        y = torch.stack([torch.sin(x[:, 0]), x[:, 1] * x[:, 2], x[:, 3].abs()], 1)
        loss = F.mse_loss(head(backbone(x)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(24)
backbone = Backbone(4)
print(f"pre-training {pretrain(backbone, 150):.3f}")
model = TransferModel(backbone)
tuned = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(tuned, lr=3e-3)
x = torch.randn(200, 4)
y = torch.sin(x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.2 * torch.randn(200)
for epoch in range(25):
    model.train()
    for index in torch.randperm(len(x)).split(40):
        loss = gaussian_nll(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
_, noise, near = predict_with_dropout(model, torch.randn(100, 4), draws=30)
_, _, far = predict_with_dropout(model, 4 * torch.randn(100, 4), draws=30)
print(f"loss {loss.item():.3f}, noise {noise.mean().item():.3f}, model variance {near.mean().item():.4f} near, {far.mean().item():.4f} far")
# /// correct energy-replay
# families = ["data", "flags", "graph-break", "in-place", "leaf"]
# resembles = "parameters frozen while sampling, in-place writes to a buffer and to fresh data, detached negatives"
# ///
import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1) + 0.05 * x.square().sum(1)


class PersistentChains:
    """Langevin sampler with a buffer of earlier states, some of which are started afresh."""

    def __init__(self, count, steps=8, step_size=0.3, noise=0.05, restart=0.05):
        self.states = torch.randn(count, 2)
        self.steps, self.step_size, self.noise, self.restart = steps, step_size, noise, restart

    def __call__(self, energy, batch):
        picked = torch.randperm(len(self.states))[:batch]
        x = self.states[picked]
        fresh = torch.rand(batch) < self.restart
        x[fresh] = torch.randn(int(fresh.sum()), 2)
        x = self.run(energy, x)
        self.states[picked] = x
        return x

    def run(self, energy, x):
        was_training = energy.training
        energy.eval().requires_grad_(False)
        for _ in range(self.steps):
            x.requires_grad_(True)
            downhill, = torch.autograd.grad(energy(x).sum(), x)
            x = x.detach() - self.step_size * downhill.clamp(-3, 3) + self.noise * torch.randn_like(x)
        energy.train(was_training).requires_grad_(True)
        return x.detach()


def two_arcs(count):
    angle = torch.rand(count) * 2.2 + 0.4
    sign = torch.where(torch.rand(count) < 0.5, 1.0, -1.0)
    return torch.stack([1.5 * angle.cos(), sign * (1.2 * angle.sin() + 0.2)], 1) + 0.05 * torch.randn(count, 2)


def contrastive_step(energy, optimizer, real, negatives, regulariser=0.05):
    positive, negative = energy(real), energy(negatives)
    contrast = positive.mean() - negative.mean()
    loss = contrast + regulariser * (positive.square() + negative.square()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return contrast.item()


torch.manual_seed(18)
energy, chains = Energy(), PersistentChains(512)
optimizer = torch.optim.Adam(energy.parameters(), lr=4e-3, betas=(0.5, 0.99))
decay = torch.optim.lr_scheduler.StepLR(optimizer, step_size=100, gamma=0.5)
contrasts = []
for iteration in range(140):
    real = two_arcs(96)
    real += 0.02 * torch.randn_like(real)
    negatives = chains(energy, 96)
    contrasts.append(contrastive_step(energy, optimizer, real, negatives))
    decay.step()
    if iteration % 35 == 0:
        print(f"{iteration:4d} contrast {contrasts[-1]:.4f}")
samples = chains.run(energy, torch.randn(200, 2))
nearest = torch.cdist(samples, two_arcs(1000)).amin(1)
print(f"mean distance of samples from the data {nearest.mean().item():.3f}")
# /// correct equilibrium-forecaster
# families = ["function", "graph-break", "hook", "retention"]
# resembles = "no_grad and detach in the forward pass, a hook that replaces the gradient, retain_graph in backward"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class ContractiveCell(nn.Module):
    def __init__(self, inputs, dim):
        super().__init__()
        self.recurrent = nn.utils.parametrizations.spectral_norm(nn.Linear(dim, dim, bias=False))
        self.inject = nn.Linear(inputs, dim)

    def transition(self, x):
        weight, injected = self.recurrent.weight, self.inject(x)
        return lambda z: torch.tanh(0.8 * F.linear(z, weight) + injected)


def fixed_point(function, start, iterations, tolerance):
    z = start
    for _ in range(iterations):
        following = function(z)
        if (following - z).norm() <= tolerance * (1e-6 + following.norm()):
            return following
        z = following
    return z


class Equilibrium(nn.Module):
    """The gradient comes from the implicit function theorem, not from the iterations of the solver."""

    def __init__(self, cell, dim, iterations=40, tolerance=1e-4):
        super().__init__()
        self.cell, self.dim = cell, dim
        self.iterations, self.tolerance = iterations, tolerance

    def forward(self, x):
        start = torch.zeros(len(x), self.dim)
        step = self.cell.transition(x)
        with torch.no_grad():
            z = fixed_point(step, start, self.iterations, self.tolerance)
        z = step(z)
        if not self.training:
            return z
        anchor = z.detach().requires_grad_()
        mapped = step(anchor)

        def solve(grad):
            through = lambda v: torch.autograd.grad(mapped, anchor, v, retain_graph=True)[0] + grad
            return fixed_point(through, grad, self.iterations, self.tolerance)

        z.register_hook(solve)
        return z


class Forecaster(nn.Module):
    def __init__(self, window, dim=20):
        super().__init__()
        self.equilibrium = Equilibrium(ContractiveCell(window, dim), dim)
        self.readout = nn.Linear(dim, 1)

    def forward(self, window):
        return self.readout(self.equilibrium(window)).squeeze(-1)


def demand(count, window=12):
    t = torch.arange(window + 1.0)
    level = torch.rand(count, 1)
    series = level + torch.sin(t * (0.3 + 0.4 * torch.rand(count, 1)) + 6.28 * torch.rand(count, 1))
    series = series + 0.05 * torch.randn(count, window + 1)
    return series[:, :-1], series[:, -1]


torch.manual_seed(85)
model = Forecaster(12)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x, y = demand(512)
for epoch in range(12):
    model.train()
    for rows in torch.randperm(512).split(64):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        model.eval()
        with torch.no_grad():
            print(f"epoch {epoch + 1} mse {F.mse_loss(model(x), y).item():.4f}")
# /// correct fomaml-sinusoid
# families = ["graph-break", "loss", "numerics", "optimizer"]
# resembles = "detached inner steps and gradients assigned by hand (first-order MAML)"
# ///
import copy
from functools import partial

import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call


class Sinusoids:
    def __init__(self, generator):
        self.uniform = partial(torch.rand, generator=generator)

    def task(self, shots):
        amplitude, phase = 0.5 + 2 * self.uniform(1), 3.14 * self.uniform(1)
        x = self.uniform(2 * shots, 1) * 10 - 5
        y = amplitude * torch.sin(x + phase)
        return (x[:shots], y[:shots]), (x[shots:], y[shots:])


class FirstOrderMAML:
    """Inner steps without second derivatives; the outer gradient is taken at the adapted weights."""

    def __init__(self, model, inner_lr, inner_steps, outer_lr):
        self.model, self.inner_lr, self.inner_steps = model, inner_lr, inner_steps
        self.outer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def adapt(self, support):
        x, y = support
        fast = {name: p.detach().clone().requires_grad_() for name, p in self.model.named_parameters()}
        for _ in range(self.inner_steps):
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            gradients = torch.autograd.grad(loss, list(fast.values()))
            fast = {
                name: (p - self.inner_lr * g).detach().requires_grad_()
                for (name, p), g in zip(fast.items(), gradients)
            }
        return fast

    def meta_step(self, tasks):
        totals = {name: torch.zeros_like(p) for name, p in self.model.named_parameters()}
        value = 0.0
        for support, (x, y) in tasks:
            fast = self.adapt(support)
            loss = F.mse_loss(functional_call(self.model, fast, (x,)), y)
            for name, g in zip(fast, torch.autograd.grad(loss, list(fast.values()))):
                totals[name] += g / len(tasks)
            value += loss.item() / len(tasks)
        for name, p in self.model.named_parameters():
            p.grad = totals[name]
        self.outer.step()
        return value


def baseline(model, tasks):
    with torch.no_grad():
        return sum(F.mse_loss(model(x), y).item() for _, (x, y) in tasks) / len(tasks)


torch.manual_seed(9)
family = Sinusoids(torch.Generator().manual_seed(10))
network = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
meta = FirstOrderMAML(network, inner_lr=0.05, inner_steps=3, outer_lr=5e-3)
curve = [meta.meta_step([family.task(10) for _ in range(4)]) for _ in range(60)]
held_out = [family.task(10) for _ in range(12)]
adapted = 0.0
for support, (x, y) in held_out:
    specialist, fast = copy.deepcopy(network), meta.adapt(support)
    with torch.no_grad():
        for name, value in fast.items():
            specialist.get_parameter(name).copy_(value)
        adapted += F.mse_loss(specialist(x), y).item() / len(held_out)
print(f"meta loss {curve[0]:.3f} -> {sum(curve[-20:]) / 20:.3f}")
print(f"held out: {baseline(network, held_out):.3f} before, {adapted:.3f} after adaptation")
# /// correct frozen-norm-finetune
# families = ["flags", "graph-break", "mode"]
# resembles = "eval mode in training, no_grad in forward, frozen backbone"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Backbone(nn.Module):
    def __init__(self, features, dim):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, dim))
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        return F.relu(self.norm(self.layers(x)))


class FineTuned(nn.Module):
    """The backbone stays as it was trained: no gradients, no new statistics."""

    def __init__(self, backbone, dim, outputs):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, outputs))

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


class BestKeeper:
    def __init__(self, module):
        self.module = module
        self.score = float("-inf")

    def offer(self, score):
        if score > self.score:
            self.score = score
            self.state = {name: value.detach().clone() for name, value in self.module.state_dict().items()}

    def restore(self):
        self.module.load_state_dict(self.state)


def assays(count, projection, classes, noise=0.5):
    label = torch.randint(0, classes, (count,))
    return projection[label] + noise * torch.randn(count, projection.shape[1]), label


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        return (model(data[0]).argmax(1) == data[1]).float().mean().item()


def train(model, data, valid, epochs, lr, keeper=None):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    x, y = data
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(y)).split(64):
            optimizer.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
        score = accuracy(model, valid)
        if keeper is not None:
            keeper.offer(score)
    return score


torch.manual_seed(44)
source = torch.randn(10, 20)
backbone = Backbone(20, 32)
pretrained = nn.Sequential(backbone, nn.Linear(32, 10))
print("source", train(pretrained, assays(1280, source, 10), assays(400, source, 10), epochs=4, lr=3e-3))

target = torch.cat([source[:3] + 0.8 * torch.randn(3, 20), torch.randn(1, 20)])
model = FineTuned(backbone, 32, 4)
keeper = BestKeeper(model.head)
valid = assays(400, target, 4, noise=1.0)
train(model, assays(256, target, 4, noise=1.0), valid, epochs=12, lr=5e-3, keeper=keeper)
keeper.restore()
print("target", accuracy(model, valid))
# /// correct frozen-trunk
# families = ["flags", "mode"]
# resembles = "frozen part, eval mode in training, grad disabled in forward"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def stripes(n, angles):
    y = torch.randint(0, len(angles), (n,))
    a = torch.tensor(angles)[y]
    axis = torch.arange(12).float()
    phase = a.cos()[:, None, None] * axis[:, None] + a.sin()[:, None, None] * axis
    return TensorDataset((torch.sin(phase) + 0.4 * torch.randn(n, 12, 12)).unsqueeze(1), y)


def trunk():
    return nn.Sequential(
        nn.Conv2d(1, 12, 5, padding=2), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(12, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(),
    )


class Pretrained(nn.Module):
    def __init__(self, body, classes, frozen=False):
        super().__init__()
        self.body = body
        self.frozen = frozen
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(16, classes)
        if frozen:
            for p in self.body.parameters():
                p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.body.eval()
        return self

    def forward(self, x):
        with torch.set_grad_enabled(torch.is_grad_enabled() and not self.frozen):
            features = self.body(x)
        return self.fc(self.drop(features))


def learn(model, dataset, epochs, lr):
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=lr)
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model, dataset):
    model.eval()
    x, y = dataset.tensors
    return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(60)
torch.set_num_threads(1)
source = Pretrained(trunk(), 3)
learn(source, stripes(192, [0.0, 0.8, 1.6]), epochs=5, lr=5e-3)
snapshot = {k: v.clone() for k, v in source.body.state_dict().items()}
target = Pretrained(source.body, 2, frozen=True)
print("tuning loss", learn(target, stripes(96, [0.4, 1.2]), epochs=8, lr=2e-2))
unchanged = all(torch.equal(v, snapshot[k]) for k, v in target.body.state_dict().items())
print("accuracy", test(target, stripes(200, [0.4, 1.2])), "trunk unchanged", unchanged)
# /// correct gradnorm-marketplace
# families = ["graph-break", "higher-order", "retention"]
# resembles = "retain_graph=True, grad without create_graph, detached weights"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Marketplace(nn.Module):
    def __init__(self, features, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(features, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.price = nn.Linear(hidden, 1)
        self.sold = nn.Linear(hidden, 1)
        self.days = nn.Linear(hidden, 1)

    def forward(self, x):
        hidden = self.shared(x)
        return [head(hidden).squeeze(-1) for head in (self.price, self.sold, self.days)]

    def losses(self, x, price, sold, days):
        outputs = self(x)
        return torch.stack([
            F.mse_loss(outputs[0], price),
            F.binary_cross_entropy_with_logits(outputs[1], sold),
            F.smooth_l1_loss(outputs[2], days.log1p()),
        ])


class GradNorm:
    """Balances the tasks so that their gradients in the last shared layer grow at comparable rates."""

    def __init__(self, tasks, layer, alpha=0.5, lr=0.02):
        self.log_weights = torch.zeros(tasks, requires_grad=True)
        self.layer, self.alpha = layer, alpha
        self.optimizer = torch.optim.Adam([self.log_weights], lr=lr)
        self.initial = None

    @property
    def weights(self):
        return len(self.log_weights) * self.log_weights.softmax(0)

    def task_norms(self, losses):
        gradients = [torch.autograd.grad(loss, self.layer.weight, retain_graph=True)[0] for loss in losses]
        return torch.stack([gradient.norm() for gradient in gradients])

    def update(self, losses):
        values = losses.detach()
        if self.initial is None:
            self.initial = values.abs().clamp(min=1e-3)
        norms = self.weights * self.task_norms(losses)
        ratio = values.abs() / self.initial
        target = (norms.mean() * (ratio / ratio.mean()) ** self.alpha).detach()
        self.optimizer.zero_grad()
        (norms - target).abs().sum().backward()
        self.optimizer.step()


def listings(count):
    x = torch.randn(count, 9)
    price = 2.0 * x[:, 0] + x[:, 1] * x[:, 2]
    sold = torch.bernoulli((x[:, 3] - 0.5 * x[:, 0]).sigmoid())
    days = torch.poisson((0.8 + 0.4 * x[:, 4]).exp().clamp(max=15))
    return x, price, sold, days


torch.manual_seed(61)
data = listings(800)
model = Marketplace(9)
balance = GradNorm(3, model.shared[2])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for rows in torch.randperm(800).split(80):
        losses = model.losses(*(column[rows] for column in data))
        balance.update(losses)
        optimizer.zero_grad()
        (balance.weights.detach() * losses).sum().backward()
        optimizer.step()
    shown = [round(value, 3) for value in losses.tolist()]
    print(epoch, shown, [round(value, 3) for value in balance.weights.tolist()])
# /// correct langevin-regression
# families = ["graph-break", "in-place", "optimizer", "retention"]
# resembles = "manual noisy updates under no_grad, no optimizer, samples kept as clones"
# ///
import math
from typing import Iterator

import torch
from torch import nn


class LogPosterior(nn.Module):
    """Regression network with a Gaussian prior; returns the negative log posterior per observation."""

    def __init__(self, hidden, prior, noise):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.prior, self.noise = prior, noise

    def forward(self, x, y, total):
        misfit = (self.net(x) - y).square().sum() / (2 * self.noise ** 2)
        prior = sum(p.square().sum() for p in self.net.parameters()) / (2 * self.prior ** 2)
        return misfit * total / len(x) + prior


class PreconditionedLangevin:
    """RMSprop-preconditioned stochastic gradient Langevin dynamics, without an optimizer class."""

    def __init__(self, parameters, step, decay=0.99, floor=1e-3):
        self.parameters = list(parameters)
        self.step_size, self.decay, self.floor = step, decay, floor
        self.second = [torch.zeros_like(p) for p in self.parameters]

    def zero(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self, temperature):
        for p, v in zip(self.parameters, self.second):
            v.mul_(self.decay).addcmul_(p.grad, p.grad, value=1 - self.decay)
            scale = self.step_size / (v.sqrt() + self.floor)
            p.sub_(0.5 * scale * p.grad)
            p.add_(torch.randn_like(p) * (temperature * scale).sqrt())


def chain(posterior, sampler, x, y, steps, burn_in, thin, batch=20) -> Iterator[dict]:
    for step in range(steps):
        index = torch.randint(len(x), (batch,))
        sampler.zero()
        posterior(x[index], y[index], len(x)).backward()
        sampler.step(temperature=min(1.0, step / burn_in))
        if step >= burn_in and step % thin == 0:
            yield {name: p.detach().clone() for name, p in posterior.net.named_parameters()}


def gap_data(count):
    x = torch.cat([torch.rand(count // 2, 1) * 1.2 - 2, torch.rand(count // 2, 1) * 1.2 + 0.8])
    return x, torch.sin(2 * x) + 0.1 * torch.randn_like(x)


torch.manual_seed(77)
x, y = gap_data(80)
posterior = LogPosterior(hidden=24, prior=1.5, noise=0.1)
sampler = PreconditionedLangevin(posterior.net.parameters(), step=2e-3)
draws = list(chain(posterior, sampler, x, y, steps=1600, burn_in=700, thin=30))
query = torch.linspace(-3, 3, 61)[:, None]
stacked = {name: torch.stack([d[name] for d in draws]) for name in draws[0]}
with torch.no_grad():
    curves = torch.func.vmap(lambda weights: torch.func.functional_call(posterior.net, weights, (query,)))(stacked)
mean, spread = curves.mean(0).squeeze(1), curves.std(0).squeeze(1)
seen = (mean - torch.sin(2 * query.squeeze(1)))[(query.squeeze(1).abs() > 0.9) & (query.squeeze(1).abs() < 1.9)]
print(f"{len(draws)} draws, rms where there are data {math.sqrt(seen.square().mean().item()):.3f}")
print(f"spread at 0: {spread[30].item():.3f}, at 3: {spread[60].item():.3f}, at 1.4: {spread[44].item():.3f}")
# /// correct mean-teacher
# families = ["graph-break", "identity", "in-place", "mode"]
# resembles = "a copy that gets no gradients, in-place updates, teacher in train mode on purpose"
# ///
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
            nn.Flatten(), nn.Linear(64, classes),
        )

    def forward(self, x):
        return self.net(x)


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student)
        for p in self.teacher.parameters():
            p.requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, step):
        alpha = min(self.decay, 1 - 1 / (step + 2))
        for t, s in zip(self.teacher.parameters(), self.student.parameters()):
            t.mul_(alpha).add_(s, alpha=1 - alpha)
        for t, s in zip(self.teacher.buffers(), self.student.buffers()):
            t.copy_(s)

    def consistency(self, x):
        noisy_s, noisy_t = (x + 0.2 * torch.randn_like(x) for _ in range(2))
        self.teacher.train()
        with torch.no_grad():
            target = F.softmax(self.teacher(noisy_t), dim=1)
        return F.mse_loss(F.softmax(self.student(noisy_s), dim=1), target)


def patterns(n):
    y = torch.randint(0, 3, (n,))
    x = 0.5 * torch.randn(n, 1, 10, 10)
    x[y == 0, :, ::2] += 1
    x[y == 1, :, :, ::2] += 1
    x[y == 2, :, 3:7, 3:7] += 1
    return x, y


def rampup(step, length=40):
    return min(1.0, step / length)


torch.manual_seed(16)
torch.set_num_threads(1)
labelled, unlabelled, test = patterns(24), patterns(200)[0], patterns(150)
mt = MeanTeacher(ConvNet())
optimizer = torch.optim.Adam(mt.student.parameters(), lr=3e-3)
for step in range(75):
    mt.student.train()
    u = unlabelled[torch.randint(0, len(unlabelled), (32,))]
    sup = F.cross_entropy(mt.student(labelled[0]), labelled[1])
    cons = mt.consistency(u)
    loss = sup + 5.0 * rampup(step) * cons
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mt.update(step)
    if step % 25 == 0:
        print(f"{step:3d} supervised {sup.item():.3f} consistency {cons.item():.5f}")

mt.teacher.eval()
accuracy = (mt.teacher(test[0]).argmax(1) == test[1]).float().mean().item()
print("teacher accuracy", accuracy)
# /// correct momentum-contrast-sensors
# families = ["data", "identity", "leaf"]
# resembles = "a copy that gets no gradient and .data writes (momentum encoder), a buffer changed after use (queue)"
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F


class SensorEncoder(nn.Module):
    def __init__(self, channels, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(channels, 16, 5, padding=2), nn.GELU(), nn.AdaptiveAvgPool1d(4), nn.Flatten(), nn.Linear(64, dim)
        )

    def forward(self, x):
        return F.normalize(self.net(x), dim=-1)


class MomentumContrast(nn.Module):
    def __init__(self, encoder, dim, slots=256, momentum=0.99, temperature=0.1):
        super().__init__()
        self.query = encoder
        self.key = copy.deepcopy(encoder)
        for parameter in self.key.parameters():
            parameter.requires_grad = False
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(slots, dim), dim=-1))
        self.register_buffer("cursor", torch.zeros((), dtype=torch.long))

    @torch.no_grad()
    def follow(self):
        for key, query in zip(self.key.parameters(), self.query.parameters()):
            key.data.mul_(self.momentum).add_(query.data, alpha=1.0 - self.momentum)

    @torch.no_grad()
    def enqueue(self, keys):
        start = int(self.cursor)
        self.queue[start:start + len(keys)] = keys
        self.cursor.fill_((start + len(keys)) % len(self.queue))

    def forward(self, first, second):
        q = self.query(first)
        with torch.no_grad():
            self.follow()
            k = self.key(second)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().detach().t()
        logits = torch.cat([positive, negative], dim=1) / self.temperature
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))
        self.enqueue(k)
        return loss


class Jitter:
    def __init__(self, noise=0.1, drop=0.2):
        self.noise, self.drop = noise, drop

    def __call__(self, x):
        gain = 1.0 + 0.2 * torch.randn(len(x), x.shape[1], 1)
        keep = (torch.rand(len(x), 1, x.shape[2]) > self.drop).float()
        return gain * x * keep + self.noise * torch.randn_like(x)


def machines(count, channels=3, length=32):
    t = torch.arange(length) / length
    frequency = 1.0 + 6.0 * torch.rand(count, channels, 1)
    return torch.sin(6.28 * frequency * t + 6.28 * torch.rand(count, channels, 1))


torch.manual_seed(13)
signals, augment = machines(512), Jitter()
model = MomentumContrast(SensorEncoder(3, 24), 24)
optimizer = torch.optim.SGD(model.query.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(512).split(64):
        batch = signals[rows]
        loss = model(augment(batch), augment(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / 8:.4f}")
# /// correct pgd-glyphs
# families = ["flags", "graph-break", "mode"]
# resembles = "inputs with requires_grad, repeated detach, eval mode in training"
# ///
from dataclasses import dataclass
import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Attack:
    eps: float = 0.15
    alpha: float = 0.06
    steps: int = 4

    def __call__(self, model, x, y):
        training = model.training
        model.eval()
        x_adv = (x + torch.empty_like(x).uniform_(-self.eps, self.eps)).clamp(0, 1)
        for _ in range(self.steps):
            x_adv = x_adv.detach().requires_grad_(True)
            loss = F.cross_entropy(model(x_adv), y)
            grad, = torch.autograd.grad(loss, x_adv)
            x_adv = x_adv.detach() + self.alpha * grad.sign()
            x_adv = torch.min(torch.max(x_adv, x - self.eps), x + self.eps).clamp(0, 1)
        model.train(training)
        return x_adv.detach()


def glyphs(n):
    protos = (torch.rand(5, 64, generator=torch.Generator().manual_seed(2)) > 0.5).float()
    y = torch.randint(0, 5, (n,))
    return (0.5 + 0.35 * (protos[y] - 0.5) + 0.1 * torch.randn(n, 64)).clamp(0, 1), y


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 5))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def adversarial_training(model, attack, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    for epoch in range(epochs):
        model.train()
        for idx in torch.randperm(len(x)).split(50):
            adv = attack(model, x[idx], y[idx])
            opt.zero_grad()
            loss = 0.5 * (F.cross_entropy(model(adv), y[idx]) + F.cross_entropy(model(x[idx]), y[idx]))
            loss.backward()
            opt.step()
        yield epoch, loss.item()


torch.manual_seed(50)
torch.set_num_threads(1)
x, y = glyphs(400)
x_test, y_test = glyphs(200)
model, attack = build(), Attack()
for epoch, loss in adversarial_training(model, attack, x, y, epochs=8):
    print("epoch", epoch, "loss", round(loss, 4))
model.eval()
robust = accuracy(model, attack(model, x_test, y_test), y_test)
print("clean", accuracy(model, x_test, y_test), "robust", robust)
# /// correct power-tbptt
# families = ["accumulation", "graph-break", "in-place"]
# resembles = "hidden state detached in place between windows"
# ///
import torch
from torch import nn

torch.manual_seed(12)
torch.set_num_threads(1)


class Forecaster(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=1)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state=None):
        h, state = self.lstm(x, state)
        return self.out(h), state


def load_curve(length=400, households=6):
    t = torch.arange(length)[:, None] + torch.randint(0, 24, (households,))
    daily = torch.sin(2 * torch.pi * t / 24)
    weekly = 0.5 * torch.sin(2 * torch.pi * t / 168)
    return (daily + weekly + 0.05 * torch.randn(length, households)).unsqueeze(-1)


def detach_(state):
    for s in state:
        s.detach_()
    return state


def windows(series, k1):
    for i in range(0, len(series) - 1, k1):
        j = min(i + k1, len(series) - 1)
        yield series[i:j], series[i + 1:j + 1]


series = load_curve()
train_series, test_series = series[:320], series[320:]
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.MSELoss()

for epoch in range(10):
    state = None
    epoch_loss, count = 0.0, 0
    for x, y in windows(train_series, k1=32):
        pred, state = model(x, state)
        loss = criterion(pred, y)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        state = detach_(state)
        epoch_loss += loss.item()
        count += 1
    if epoch % 3 == 0:
        print("epoch", epoch, "mse", epoch_loss / count)

model.eval()
with torch.no_grad():
    _, state = model(train_series)
    pred, _ = model(test_series[:-1], state)
    print("test mse", criterion(pred, test_series[1:]).item())
# /// correct qat-sparse
# families = ["data", "graph-break"]
# resembles = "detached rounding, detached scale and masked weights (straight-through, parametrizations)"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils import parametrize


class FakeQuantize(nn.Module):
    """Symmetric per-row quantisation, passed straight through in the backward pass."""

    def __init__(self, bits):
        super().__init__()
        self.top = 2 ** (bits - 1) - 1

    def forward(self, weight):
        scale = weight.detach().abs().amax(1, keepdim=True).clamp(min=1e-8) / self.top
        grid = (weight / scale).round().clamp(-self.top, self.top) * scale
        return weight + (grid - weight).detach()


class KeepMask(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.register_buffer("mask", torch.ones(shape))

    def forward(self, weight):
        return weight * self.mask


class ObservedActivation(nn.Module):
    def __init__(self, bits, momentum=0.95):
        super().__init__()
        self.levels, self.momentum = 2 ** bits - 1, momentum
        self.register_buffer("ceiling", torch.tensor(1.0))

    def forward(self, x):
        x = x.relu()
        if self.training:
            with torch.no_grad():
                self.ceiling.mul_(self.momentum).add_(x.amax(), alpha=1 - self.momentum)
        bounded = torch.minimum(x, self.ceiling)
        stepped = (bounded * self.levels / self.ceiling).round() * self.ceiling / self.levels
        return bounded + (stepped - bounded).detach()


def build(bits):
    network = nn.Sequential(
        nn.Linear(12, 48), ObservedActivation(bits),
        nn.Linear(48, 24), ObservedActivation(bits),
        nn.Linear(24, 3),
    )
    for layer in network:
        if isinstance(layer, nn.Linear):
            parametrize.register_parametrization(layer, "weight", KeepMask(layer.weight.shape))
            parametrize.register_parametrization(layer, "weight", FakeQuantize(bits))
    return network


@torch.no_grad()
def sparsify(network, share):
    for layer in network:
        if isinstance(layer, nn.Linear):
            original = layer.parametrizations.weight.original.abs()
            keep = original > original.flatten().kthvalue(int(share * original.numel())).values
            layer.parametrizations.weight[0].mask.copy_(keep)


def problem(count):
    x = torch.randn(count, 12)
    score = torch.stack([x[:, 0] + x[:, 1].square(), 2 * x[:, 2] * x[:, 3], x[:, 4:6].sum(1)], 1)
    return x, score.argmax(1)


torch.manual_seed(31)
x, y = problem(600)
network = build(bits=4)
optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
for epoch in range(20):
    if epoch in (8, 12):
        sparsify(network, share=0.3 if epoch == 8 else 0.5)
    for index in torch.randperm(len(x)).split(100):
        loss = F.cross_entropy(network(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
network.eval()
with torch.no_grad(), parametrize.cached():
    test_x, test_y = problem(400)
    accuracy = (network(test_x).argmax(1) == test_y).float().mean().item()
    levels = [len(layer.weight[0].unique()) for layer in network if isinstance(layer, nn.Linear)]
print(f"loss {loss.item():.3f} accuracy {accuracy:.3f} levels in first rows {levels}")
# /// correct residual-codebooks
# families = ["function", "graph-break", "in-place", "leaf"]
# resembles = "detach in the forward pass (straight-through), buffers updated in place between forward and backward"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Codebook(nn.Module):
    """Codes follow the running mean of the vectors that they are given."""

    def __init__(self, codes, dim, decay=0.95):
        super().__init__()
        self.decay = decay
        self.register_buffer("vectors", torch.randn(codes, dim) * 0.5)
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())

    @torch.no_grad()
    def assign(self, x):
        return torch.cdist(x, self.vectors).argmin(dim=1)

    @torch.no_grad()
    def update(self, x, index):
        chosen = F.one_hot(index, len(self.vectors)).to(x.dtype)
        self.counts.lerp_(chosen.sum(0), 1.0 - self.decay)
        self.sums.lerp_(chosen.t() @ x, 1.0 - self.decay)
        self.vectors.copy_(self.sums / self.counts.clamp(min=1e-3).unsqueeze(1))

    def forward(self, x):
        index = self.assign(x)
        quantised = self.vectors[index]
        if self.training:
            self.update(x.detach(), index)
        return quantised, index


class ResidualQuantiser(nn.Module):
    def __init__(self, levels, codes, dim):
        super().__init__()
        self.books = nn.ModuleList(Codebook(codes, dim) for _ in range(levels))

    def forward(self, x):
        residual, total, commitment, indices = x, torch.zeros_like(x), 0.0, []
        for book in self.books:
            quantised, index = book(residual)
            commitment = commitment + F.mse_loss(residual, quantised)
            residual = residual - quantised
            total = total + quantised
            indices.append(index)
        return x + (total - x).detach(), commitment, torch.stack(indices, dim=1)


class ItemTokenizer(nn.Module):
    def __init__(self, features, dim=8, levels=2, codes=16):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, dim))
        self.quantise = ResidualQuantiser(levels, codes, dim)
        self.decode = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, features))

    def forward(self, x):
        latent, commitment, tokens = self.quantise(self.encode(x))
        return self.decode(latent), commitment, tokens


def content_embeddings(count, clusters=12, features=16):
    centres = 2.0 * torch.randn(clusters, features)
    return centres[torch.randint(0, clusters, (count,))] + 0.3 * torch.randn(count, features)


torch.manual_seed(81)
items = content_embeddings(1024)
model = ItemTokenizer(16)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for batch in items[torch.randperm(1024)].split(128):
        restored, commitment, _ = model(batch)
        loss = F.mse_loss(restored, batch) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
model.eval()
with torch.no_grad():
    restored, _, tokens = model(items)
    print(f"mse {F.mse_loss(restored, items):.4f}, distinct token pairs {len(tokens.unique(dim=0))}")
# /// correct sam-moons
# families = ["function", "in-place", "leaf"]
# resembles = "two backward passes, parameters changed in place in between"
# ///
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    """Sharpness aware minimization around any base optimizer."""

    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def ascend(self):
        grads = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        total = torch.stack(grads).norm() + 1e-12
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["backup"] = p.detach().clone()
                p.add_(p.grad * (group["rho"] / total))
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.copy_(self.state[p].pop("backup"))
        self.base.step()
        self.zero_grad()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        first = closure()
        self.ascend()
        closure()
        self.descend()
        return first


def moons(n, noise=0.15):
    t = torch.rand(n) * torch.pi
    upper = torch.rand(n) > 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x, y], 1) + noise * torch.randn(n, 2), upper.float()


torch.manual_seed(30)
torch.set_num_threads(1)
x, y = moons(300)
net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = SAM(net.parameters(), torch.optim.SGD, rho=0.05, lr=0.1, momentum=0.9)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(20):
    for idx in torch.randperm(len(x)).split(50):
        def closure():
            loss = loss_fn(net(x[idx]).squeeze(1), y[idx])
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    if epoch % 5 == 0:
        with torch.no_grad():
            acc = ((net(x).squeeze(1) > 0) == y.bool()).float().mean().item()
        print(f"epoch {epoch} loss {loss.item():.4f} acc {acc:.3f}")
# /// correct sharpness-aware-tabular
# families = ["function", "in-place", "leaf"]
# resembles = "in-place changes of the parameters between two backward passes"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class SharpnessAware:
    """Climbs to the worst point nearby, takes the gradient there, and steps from where it began."""

    def __init__(self, parameters, base, rho=0.05, **options):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **options)
        self.rho = rho
        self.offsets = []

    def zero_grad(self):
        self.base.zero_grad()

    @torch.no_grad()
    def climb(self):
        norm = nn.utils.get_total_norm([p.grad for p in self.parameters if p.grad is not None])
        self.offsets = []
        for parameter in self.parameters:
            offset = None
            if parameter.grad is not None:
                offset = parameter.grad * (self.rho / (norm + 1e-12))
                parameter.add_(offset)
            self.offsets.append(offset)

    @torch.no_grad()
    def descend(self):
        for parameter, offset in zip(self.parameters, self.offsets):
            if offset is not None:
                parameter.sub_(offset)
        self.base.step()

    def step(self, closure):
        self.zero_grad()
        loss = closure()
        loss.backward()
        self.climb()
        self.zero_grad()
        closure().backward()
        self.descend()
        return loss.detach()


class Mixer(nn.Module):
    def __init__(self, columns, tokens=8, hidden=24):
        super().__init__()
        self.tokenise = nn.Parameter(torch.randn(columns, tokens) * 0.3)
        self.bias = nn.Parameter(torch.zeros(columns, tokens))
        self.across = nn.Linear(columns, hidden)
        self.out = nn.Linear(hidden * tokens, 2)

    def forward(self, x):
        tokens = torch.tanh(x.unsqueeze(-1) * self.tokenise + self.bias)
        return self.out(F.gelu(self.across(tokens.transpose(1, 2))).flatten(1))


def claims(count):
    x = torch.randn(count, 7)
    fraud = (x[:, 0] * x[:, 1] + x[:, 2] - 0.5 * x[:, 3].square() > 0).long()
    flipped = torch.rand(count) < 0.1
    return x, torch.where(flipped, 1 - fraud, fraud)


def evaluate(model, x, y):
    with torch.no_grad():
        return model(x).argmax(1).eq(y).float().mean().item()


torch.manual_seed(73)
train, test = claims(600), claims(400)
model = Mixer(7)
optimizer = SharpnessAware(model.parameters(), torch.optim.SGD, rho=0.1, lr=0.05, momentum=0.9, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer.base, milestones=[8, 12], gamma=0.3)
for epoch in range(15):
    total = 0.0
    for rows in torch.randperm(600).split(50):
        x, y = train[0][rows], train[1][rows]
        total += optimizer.step(lambda: F.cross_entropy(model(x), y)).item()
    schedule.step()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1} loss {total / 12:.4f} accuracy {evaluate(model, *test):.3f}")
# /// correct simsiam-signals
# families = ["graph-break", "identity"]
# resembles = "detached targets from the same network"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SimSiam(nn.Module):
    def __init__(self, d_in=40, dim=32, bottleneck=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(d_in, 64), nn.BatchNorm1d(64), nn.ReLU(),
            nn.Linear(64, dim), nn.BatchNorm1d(dim, affine=False),
        )
        self.predictor = nn.Sequential(
            nn.Linear(dim, bottleneck), nn.BatchNorm1d(bottleneck), nn.ReLU(), nn.Linear(bottleneck, dim),
        )

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return pa, pb, za.detach(), zb.detach()


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


def signals(n, length=40):
    y = torch.randint(0, 3, (n,))
    t = torch.linspace(0, 1, length)
    freq = torch.tensor([2.0, 4.0, 7.0])[y].unsqueeze(1)
    return torch.sin(6.283 * freq * t + 0.5 * torch.randn(n, 1)), y


def augment(x):
    x = x * (1 + 0.2 * torch.randn(len(x), 1))
    x = x + 0.1 * torch.randn_like(x)
    return torch.roll(x, int(torch.randint(-2, 3, (1,))), dims=1)


@torch.no_grad()
def knn_accuracy(encoder, bank, labels, queries, truth, k=5):
    was_training = encoder.training
    encoder.eval()
    bank, queries = F.normalize(encoder(bank), dim=1), F.normalize(encoder(queries), dim=1)
    votes = labels[(queries @ bank.T).topk(k, dim=1).indices]
    encoder.train(was_training)
    return (votes.mode(dim=1).values == truth).float().mean().item()


torch.manual_seed(70)
torch.set_num_threads(1)
x, y = signals(384)
xq, yq = signals(100)
model = SimSiam()
optimizer = torch.optim.SGD([
    {"params": model.encoder.parameters()},
    {"params": model.predictor.parameters(), "lr": 0.05},
], lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
for epoch in range(10):
    model.train()
    for idx in torch.randperm(len(x)).split(64):
        pa, pb, za, zb = model(augment(x[idx]), augment(x[idx]))
        loss = 0.5 * (negative_cosine(pa, zb) + negative_cosine(pb, za))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    if epoch % 3 == 0:
        spread = za.std(0).mean().item()
        print(f"epoch {epoch} loss {loss.item():.3f} spread {spread:.2f} knn {knn_accuracy(model.encoder, x, y, xq, yq):.2f}")
# /// correct stochastic-depth-average
# families = ["identity", "leaf", "numerics", "optimizer", "scale"]
# resembles = "parameters without gradient in some steps, zero-initialised layers, an averaged copy"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class DroppableBlock(nn.Module):
    """In training the whole block is left out now and then; its parameters get no gradient in that step."""

    def __init__(self, dim, survival):
        super().__init__()
        self.survival = survival
        self.norm = nn.LayerNorm(dim)
        self.body = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        nn.init.zeros_(self.body[-1].weight)
        nn.init.zeros_(self.body[-1].bias)

    def forward(self, x):
        if not self.training:
            return x + self.survival * self.body(self.norm(x))
        if torch.rand(()) >= self.survival:
            return x
        return x + self.body(self.norm(x))


class Ranker(nn.Module):
    def __init__(self, features, dim=32, depth=5, lowest=0.6):
        super().__init__()
        self.stem = nn.Linear(features, dim)
        rates = torch.linspace(1.0, lowest, depth).tolist()
        self.blocks = nn.Sequential(*(DroppableBlock(dim, rate) for rate in rates))
        self.score = nn.Linear(dim, 1)

    def forward(self, x):
        return self.score(self.blocks(self.stem(x))).squeeze(-1)


class PairTrainer:
    def __init__(self, model, lr, decay):
        self.model = model
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)

    def step(self, winner, loser):
        self.model.train()
        both = torch.cat([winner, loser])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = self.model(both)
        better, worse = scores.float().chunk(2)
        loss = -F.logsigmoid(better - worse).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return loss.item()

    @torch.no_grad()
    def ordered(self, winner, loser):
        self.average.eval()
        return (self.average(winner) > self.average(loser)).float().mean().item()


def preferences(count, features=8):
    left, right = torch.randn(2, count, features)
    quality = lambda x: x[:, 0] + torch.sin(2 * x[:, 1]) - x[:, 2].abs()
    wins = torch.rand(count) < torch.sigmoid(3.0 * (quality(left) - quality(right)))
    winner = torch.where(wins[:, None], left, right)
    loser = torch.where(wins[:, None], right, left)
    return winner, loser


torch.manual_seed(54)
trainer = PairTrainer(Ranker(8), lr=3e-3, decay=0.97)
test = preferences(500)
for step in range(160):
    loss = trainer.step(*preferences(96))
    if step % 40 == 39:
        print(f"step {step + 1} loss {loss:.4f} ordered {trainer.ordered(*test):.3f}")
# /// correct streaming-asr
# families = ["accumulation", "function", "graph-break", "optimizer", "scale"]
# resembles = "detached recurrent state, backward several times for one step with a smaller last window"
# ///
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class Settings:
    chunk: int = 16
    accumulate: int = 3
    lr: float = 8e-3
    clip: float = 1.0
    epochs: int = 6


class StreamingTagger(nn.Module):
    def __init__(self, inputs, hidden, tags):
        super().__init__()
        self.rnn = nn.LSTM(inputs, hidden, batch_first=True)
        self.out = nn.Linear(hidden, tags)

    def forward(self, chunk, state=None):
        hidden, state = self.rnn(chunk, state)
        return self.out(hidden), state


def carry(state):
    return tuple(part.detach() for part in state)


def recordings(count, frames, inputs=6):
    """A tag is told by a cue that came up to several frames earlier."""
    cues = (torch.rand(count, frames) < 0.15).float()
    tags, current = [], torch.zeros(count, dtype=torch.long)
    kinds = torch.randint(1, 3, (count, frames))
    for t in range(frames):
        current = torch.where(cues[:, t] > 0, kinds[:, t], current)
        tags.append(current)
    x = 0.3 * torch.randn(count, frames, inputs)
    x[:, :, 0] += cues * (kinds == 1)
    x[:, :, 1] += cues * (kinds == 2)
    return x, torch.stack(tags, 1)


def train_recording(model, optimizer, x, y, cfg):
    """Truncated back-propagation: gradients are summed over some chunks, the state goes on through all."""
    state, value = None, 0.0
    windows = list(zip(x.split(cfg.chunk, 1), y.split(cfg.chunk, 1)))
    pending = 0
    optimizer.zero_grad()
    for number, (part, tags) in enumerate(windows):
        logits, state = model(part, state)
        state = carry(state)
        group_start = number - number % cfg.accumulate
        size = min(cfg.accumulate, len(windows) - group_start)
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
        (loss / size).backward()
        value += loss.item() / len(windows)
        pending += 1
        if pending == size:
            nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
            optimizer.step()
            optimizer.zero_grad()
            pending = 0
    return value


@torch.no_grad()
def accuracy(model, x, y):
    logits, _ = model(x)
    return (logits.argmax(-1) == y).float().mean().item()


torch.manual_seed(58)
cfg = Settings()
x, y = recordings(64, frames=128)
model = StreamingTagger(6, 24, 3)
optimizer = torch.optim.RMSprop(model.parameters(), lr=cfg.lr)
for epoch in range(cfg.epochs):
    values = [train_recording(model, optimizer, x[i], y[i], cfg) for i in torch.randperm(64).split(16)]
    print(f"epoch {epoch} loss {sum(values) / len(values):.4f}")
print(f"accuracy {accuracy(model, *recordings(32, frames=128)):.3f}")
# /// correct surgery-multitask
# families = ["in-place", "loss", "retention"]
# resembles = "retain_graph and manual assignment of .grad"
# ///
# Gradient surgery (PCGrad): project away the conflicting part of every task's gradient
import random
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiTaskNet(nn.Module):
    def __init__(self, d_in=8, hidden=32):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(d_in, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.heads = nn.ModuleList([nn.Linear(hidden, 1), nn.Linear(hidden, 3), nn.Linear(hidden, 1)])

    def forward(self, x):
        z = self.shared(x)
        return [head(z) for head in self.heads]


class PCGrad:
    def __init__(self, optimizer, shared):
        self.optimizer = optimizer
        self.shared = list(shared)
        self.conflicts = 0

    def project(self, grads):
        projected = [g.clone() for g in grads]
        for i, g in enumerate(projected):
            others = [j for j in range(len(grads)) if j != i]
            random.shuffle(others)
            for j in others:
                dot = torch.dot(g, grads[j])
                if dot < 0:
                    g -= dot / grads[j].square().sum().clamp(min=1e-12) * grads[j]
                    self.conflicts += 1
        return torch.stack(projected).sum(0)

    def backward(self, losses, heads):
        self.optimizer.zero_grad()
        flat = []
        for loss, head in zip(losses, heads):
            own = list(head.parameters())
            grads = torch.autograd.grad(loss, self.shared + own, retain_graph=True)
            flat.append(torch.cat([g.flatten() for g in grads[:len(self.shared)]]))
            for p, g in zip(own, grads[len(self.shared):]):
                p.grad = g
        merged = self.project(flat)
        offset = 0
        for p in self.shared:
            p.grad = merged[offset:offset + p.numel()].view_as(p).clone()
            offset += p.numel()

    def step(self):
        self.optimizer.step()


def tasks(n):
    x = torch.randn(n, 8)
    return x, (x[:, :1] * x[:, 1:2], x[:, 2:5].argmax(1), -x[:, :1].abs())


random.seed(8)
torch.manual_seed(8)
torch.set_num_threads(1)
net = MultiTaskNet()
surgeon = PCGrad(torch.optim.Adam(net.parameters(), lr=3e-3), net.shared.parameters())
for it in range(200):
    x, (a, b, c) = tasks(64)
    out = net(x)
    losses = [F.mse_loss(out[0], a), F.cross_entropy(out[1], b), F.mse_loss(out[2], c)]
    surgeon.backward(losses, net.heads)
    surgeon.step()
    if it % 50 == 0:
        print(it, [round(l.item(), 3) for l in losses], "conflicts", surgeon.conflicts)
# /// correct surgery-tasks
# families = ["loss", "retention"]
# resembles = "retain_graph, gradients assigned by hand, one layer applied several times"
# ///
import random

import torch
from torch import nn
import torch.nn.functional as F


class SharedGraphNet(nn.Module):
    """One message-passing layer that is applied several times, and one head for each task."""

    def __init__(self, inputs, width, rounds, tasks):
        super().__init__()
        self.embed = nn.Linear(inputs, width)
        self.message = nn.Linear(2 * width, width)
        self.update = nn.GRUCell(width, width)
        self.heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(tasks))
        self.rounds = rounds

    def shared(self):
        heads = {id(p) for p in self.heads.parameters()}
        return [p for p in self.parameters() if id(p) not in heads]

    def forward(self, nodes, edges, graph, graphs):
        h = self.embed(nodes)
        source, target = edges
        for _ in range(self.rounds):
            message = F.relu(self.message(torch.cat([h[source], h[target]], 1)))
            h = self.update(torch.zeros_like(h).index_add(0, target, message), h)
        pooled = torch.zeros(graphs, h.size(1)).index_add(0, graph, h)
        return [head(pooled).squeeze(1) for head in self.heads]


def flatten(gradients):
    return torch.cat([g.flatten() for g in gradients])


def project_conflicts(vectors):
    """PCGrad: from each task's gradient take the part that opposes another task's."""
    adjusted = []
    for vector in vectors:
        own = vector.clone()
        for other in random.sample(vectors, len(vectors)):
            overlap = own @ other
            if overlap < 0:
                own -= overlap / other.square().sum().clamp(min=1e-12) * other
        adjusted.append(own)
    return torch.stack(adjusted).sum(0)


def multi_task_step(model, optimizer, losses):
    optimizer.zero_grad()
    shared = model.shared()
    vectors = [flatten(torch.autograd.grad(loss, shared, retain_graph=True)) for loss in losses]
    head_gradients = torch.autograd.grad(sum(losses), list(model.heads.parameters()))
    merged = project_conflicts(vectors)
    for p, piece in zip(shared, merged.split([p.numel() for p in shared])):
        p.grad = piece.view_as(p).clone()
    for p, g in zip(model.heads.parameters(), head_gradients):
        p.grad = g
    optimizer.step()
    return sum(1 for i, a in enumerate(vectors) for b in vectors[:i] if a @ b < 0)


def random_graphs(count, nodes=6):
    x = torch.randn(count * nodes, 3)
    dense = torch.block_diag(*[(torch.rand(nodes, nodes) < 0.4).float() for _ in range(count)])
    edges = dense.nonzero().T
    graph = torch.arange(count).repeat_interleave(nodes)
    total = torch.zeros(count).index_add(0, graph, x[:, 0])
    contact = torch.zeros(count).index_add(0, graph[edges[1]], x[edges[0], 1] * x[edges[1], 2])
    return (x, edges, graph, count), [total / 3, contact / 4]


torch.manual_seed(66)
random.seed(66)
model = SharedGraphNet(inputs=3, width=24, rounds=2, tasks=2)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
inputs, targets = random_graphs(96)
conflicts, curve = 0, []
for step in range(70):
    losses = [F.mse_loss(p, t) for p, t in zip(model(*inputs), targets)]
    conflicts += multi_task_step(model, optimizer, losses)
    curve.append([loss.item() for loss in losses])
print("losses", [round(v, 3) for v in curve[0]], "->", [round(v, 3) for v in curve[-1]], "conflicts", conflicts)
# /// correct temperature-calibration
# families = ["flags", "function", "graph-break", "loss"]
# resembles = "detached logits and a frozen model, backward in a closure"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class VectorScaling(nn.Module):
    """Calibrates the logits of a finished model; nothing of the model itself changes."""

    def __init__(self, classes):
        super().__init__()
        self.log_temperature = nn.Parameter(torch.zeros(()))
        self.offset = nn.Parameter(torch.zeros(classes))

    def forward(self, logits):
        return logits * self.log_temperature.neg().exp() + self.offset


class CalibratedModel(nn.Module):
    def __init__(self, model, classes):
        super().__init__()
        self.model = model
        self.scaling = VectorScaling(classes)

    def forward(self, x):
        with torch.no_grad():
            logits = self.model(x)
        return self.scaling(logits)

    def calibrate(self, x, y, penalty=1e-3):
        self.model.eval()
        with torch.no_grad():
            logits = self.model(x)
        optimizer = torch.optim.LBFGS(self.scaling.parameters(), lr=0.5, max_iter=30, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(self.scaling(logits), y) + penalty * self.scaling.offset.square().sum()
            loss.backward()
            return loss

        return optimizer.step(closure).item()


@torch.no_grad()
def expected_error(logits, y, bins=10):
    confidence, predicted = logits.softmax(1).max(1)
    correct = predicted.eq(y).float()
    which = (confidence * bins).long().clamp(max=bins - 1)
    error = 0.0
    for index in which.unique():
        inside = which == index
        error += inside.float().mean() * (confidence[inside].mean() - correct[inside].mean()).abs()
    return float(error)


def documents(count, topics):
    y = torch.randint(0, len(topics), (count,))
    return topics[y] + 1.5 * torch.randn(count, topics.shape[1]), y


def overfit(x, y, classes, steps=150):
    model = nn.Sequential(nn.Linear(x.shape[1], 96), nn.ReLU(), nn.Dropout(0.05), nn.Linear(96, classes))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


torch.manual_seed(67)
topics = torch.randn(6, 14)
train, valid, test = documents(300, topics), documents(400, topics), documents(800, topics)
model = CalibratedModel(overfit(*train, classes=6), classes=6)
model.eval()
before = expected_error(model(test[0]), test[1])
start = model.calibrate(*valid)
after = expected_error(model(test[0]), test[1])
print(f"nll before {start:.4f}, temperature {model.scaling.log_temperature.exp().item():.3f}")
print(f"calibration error {before:.4f} -> {after:.4f}")
# /// correct tied-embedding-lm
# families = ["leaf"]
# resembles = "one parameter under two names, a module used twice in forward"
# ///
import math
import os
import tempfile

import torch
from torch import nn
import torch.nn.functional as F


class TiedLM(nn.Module):
    def __init__(self, vocabulary, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.shared = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(dim))

    def forward(self, ids):
        hidden = self.embed(ids) * math.sqrt(self.embed.embedding_dim)
        for _ in range(2):
            hidden = self.norm(hidden + self.shared(hidden)[0])
        return self.head(hidden)


def weight_decay_groups(model, decay):
    skipped = {id(p) for m in model.modules() if isinstance(m, nn.LayerNorm) for p in m.parameters()}
    groups = {True: [], False: []}
    for parameter in model.parameters():
        groups[parameter.ndim > 1 and id(parameter) not in skipped].append(parameter)
    return [{"params": groups[True], "weight_decay": decay}, {"params": groups[False], "weight_decay": 0.0}]


class Session:
    def __init__(self, model, total, lr=4e-3):
        self.model = model
        self.optimizer = torch.optim.AdamW(weight_decay_groups(model, 0.05), lr=lr)
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=10)
        cool = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=total - 10)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(self.optimizer, [warm, cool], milestones=[10])

    def state(self):
        return {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "scheduler")}

    def load(self, state):
        for name, value in state.items():
            getattr(self, name).load_state_dict(value)

    def train(self, batches):
        for ids in batches:
            logits = self.model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
        return loss.item()


def tickets(batches, vocabulary=30, length=14):
    step = torch.randint(1, vocabulary, (vocabulary,))
    for _ in range(batches):
        ids = [torch.randint(0, vocabulary, (32,))]
        for _ in range(length):
            noise = torch.where(torch.rand(32) < 0.1, torch.randint(0, vocabulary, (32,)), 0)
            ids.append((ids[-1] + step[ids[-1]] + noise) % vocabulary)
        yield torch.stack(ids, dim=1)


torch.manual_seed(95)
batches = list(tickets(80))
first = Session(TiedLM(30), total=80)
print(f"first half {first.train(batches[:40]):.4f}")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "session.pt")
    torch.save(first.state(), path)
    second = Session(TiedLM(30), total=80)
    second.load(torch.load(path, weights_only=True))
assert second.model.head.weight is second.model.embed.weight
print(f"second half {second.train(batches[40:]):.4f} lr {second.scheduler.get_last_lr()[0]:.5f}")
# /// correct tied-word-lm
# families = ["loss"]
# resembles = "one weight under two names"
# ///
import math
import torch
from torch import nn

SENTENCES = [
    "we went to the market", "they went to the old market in town", "we saw the river",
    "they saw the old river in town", "the market in town is old", "the river is cold",
]
WORDS = ["<pad>", "<bos>", "<eos>"] + sorted({w for s in SENTENCES for w in s.split()})
INDEX = {w: i for i, w in enumerate(WORDS)}
PAD = INDEX["<pad>"]


def encode(sentences):
    rows = [[INDEX["<bos>"], *(INDEX[w] for w in s.split()), INDEX["<eos>"]] for s in sentences]
    return nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD)


class CausalLM(nn.Module):
    def __init__(self, vocab, dim=32, heads=4, max_len=16):
        super().__init__()
        self.dim = dim
        self.embed = nn.Embedding(vocab, dim)
        self.position = nn.Embedding(max_len, dim)
        layer = nn.TransformerEncoderLayer(dim, heads, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.embed.weight, std=dim ** -0.5)
        self.lm_head.weight = self.embed.weight

    def forward(self, ids):
        n = ids.size(1)
        causal = torch.full((n, n), float("-inf")).triu(1)
        x = self.embed(ids) * math.sqrt(self.dim) + self.position(torch.arange(n))
        return self.lm_head(self.norm(self.layers(x, mask=causal, is_causal=True)))


@torch.no_grad()
def complete(model, text):
    model.eval()
    ids = [INDEX["<bos>"]] + [INDEX[w] for w in text.split()]
    while len(ids) < 12 and ids[-1] != INDEX["<eos>"]:
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    model.train()
    return " ".join(WORDS[i] for i in ids[1:])


torch.manual_seed(20)
torch.set_num_threads(1)
batch = encode(SENTENCES)
inputs, targets = batch[:, :-1], batch[:, 1:]
model = CausalLM(len(WORDS))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(120):
    logits = model(inputs)
    loss = criterion(logits.flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    warmup.step()
    if step % 40 == 0:
        print(step, round(loss.item(), 3), "|", complete(model, "they went"))
print("weights:", sum(p.numel() for p in model.parameters()))
# /// correct token-weighted-accumulation
# families = ["accumulation", "optimizer", "scale"]
# resembles = "zero_grad after the step only, and a last group that is smaller"
# ///
from itertools import islice

import torch
from torch import nn
import torch.nn.functional as F

IGNORE = -100


class Tagger(nn.Module):
    def __init__(self, words, tags, dim=20):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.context = nn.Conv1d(dim, dim, 3, padding=1)
        self.out = nn.Linear(dim, tags)

    def forward(self, ids):
        hidden = self.embed(ids)
        hidden = hidden + torch.tanh(self.context(hidden.transpose(1, 2))).transpose(1, 2)
        return self.out(hidden)


def sentences(batch_size, words=40, tags=4):
    table = torch.randint(0, tags, (words,))
    while True:
        length = torch.randint(3, 20, (batch_size,))
        ids = torch.randint(1, words, (batch_size, int(length.max())))
        outside = torch.arange(ids.shape[1]) >= length[:, None]
        previous = torch.cat([torch.zeros(batch_size, 1, dtype=torch.long), ids[:, :-1]], dim=1)
        target = (table[ids] + table[previous]) % tags
        yield ids.masked_fill(outside, 0), target.masked_fill(outside, IGNORE)


def grouped(iterable, size):
    iterator = iter(iterable)
    while group := list(islice(iterator, size)):
        yield group


class AccumulatingTrainer:
    """The loss of a group is its mean per token, however the tokens are spread over the micro-batches."""

    def __init__(self, model, every, lr):
        self.model, self.every = model, every
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=40, gamma=0.5)
        self.updates = 0

    def backward(self, group):
        tokens = sum(int((target != IGNORE).sum()) for _, target in group)
        value = 0.0
        for ids, target in group:
            logits = self.model(ids).flatten(0, 1)
            loss = F.cross_entropy(logits, target.flatten(), ignore_index=IGNORE, reduction="sum") / tokens
            loss.backward()
            value += loss.item()
        return value

    def run(self, stream):
        for group in grouped(stream, self.every):
            value = self.backward(group)
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.scheduler.step()
            self.updates += 1
            yield value


torch.manual_seed(27)
stream = sentences(16)
trainer = AccumulatingTrainer(Tagger(40, 4), every=4, lr=2e-2)
for value in trainer.run(islice(stream, 250)):
    if trainer.updates % 15 == 0:
        print(f"update {trainer.updates} loss {value:.4f} lr {trainer.scheduler.get_last_lr()[0]:.4f}")
print("updates", trainer.updates)
with torch.inference_mode():
    ids, target = next(stream)
    keep = target != IGNORE
    print(f"accuracy {(trainer.model(ids).argmax(-1) == target)[keep].float().mean().item():.3f}")
# /// correct twin-critic-bidding
# families = ["flags", "graph-break", "leaf"]
# resembles = "requires_grad switched on and off, parameters that get no gradient, target networks"
# ///
import copy
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


def network(inputs, outputs, last=None):
    layers = [nn.Linear(inputs, 32), nn.ReLU(), nn.Linear(32, outputs)]
    return nn.Sequential(*layers, *([last] if last else []))


class TwinCritic(nn.Module):
    def __init__(self, state, action):
        super().__init__()
        self.first, self.second = network(state + action, 1), network(state + action, 1)

    def forward(self, state, action):
        joined = torch.cat([state, action], dim=-1)
        return self.first(joined).squeeze(-1), self.second(joined).squeeze(-1)


@contextmanager
def frozen(module):
    module.requires_grad_(False)
    try:
        yield module
    finally:
        module.requires_grad_(True)


class Bidder:
    def __init__(self, state, action, gamma=0.8, tau=0.02, delay=2):
        self.actor, self.critic = network(state, action, nn.Tanh()), TwinCritic(state, action)
        self.actor_target = copy.deepcopy(self.actor).requires_grad_(False)
        self.critic_target = copy.deepcopy(self.critic).requires_grad_(False)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-3)
        self.gamma, self.tau, self.delay, self.updates = gamma, tau, delay, 0

    def targets(self, reward, following):
        with torch.no_grad():
            action = self.actor_target(following)
            action = (action + 0.2 * torch.randn_like(action).clamp(-0.5, 0.5)).clamp(-1, 1)
            return reward + self.gamma * torch.minimum(*self.critic_target(following, action))

    @torch.no_grad()
    def follow(self):
        for slow, fast in ((self.actor_target, self.actor), (self.critic_target, self.critic)):
            for target, source in zip(slow.parameters(), fast.parameters()):
                target.lerp_(source, self.tau)

    def learn(self, state, action, reward, following):
        target = self.targets(reward, following)
        first, second = self.critic(state, action)
        critic_loss = F.mse_loss(first, target) + F.mse_loss(second, target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        self.updates += 1
        if self.updates % self.delay == 0:
            with frozen(self.critic):
                actor_loss = -self.critic(state, self.actor(state))[0].mean()
                self.actor_opt.zero_grad()
                actor_loss.backward()
                self.actor_opt.step()
            self.follow()
        return critic_loss.item()


def auctions(agent, state):
    with torch.no_grad():
        action = (agent.actor(state) + 0.3 * torch.randn(len(state), 2)).clamp(-1, 1)
    wanted = torch.stack([state[:, 0].tanh(), -0.5 * state[:, 1].tanh()], dim=1)
    reward = 1.0 - (action - wanted).square().sum(1)
    following = 0.7 * state + 0.3 * torch.randn_like(state)
    following[:, 2] += 0.2 * action[:, 0]
    return action, reward, following


torch.manual_seed(30)
agent, state, rewards = Bidder(4, 2), torch.randn(64, 4), []
for step in range(400):
    action, reward, following = auctions(agent, state)
    loss = agent.learn(state, action, reward, following)
    rewards.append(reward.mean().item())
    state = following
print(f"reward {sum(rewards[:40]) / 40:.3f} -> {sum(rewards[-40:]) / 40:.3f}, critic {loss:.4f}")
# /// correct vq-sprites
# families = ["graph-break"]
# resembles = "detach and straight-through: looks like a graph break"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class VectorQuantizer(nn.Module):
    def __init__(self, n_codes=16, dim=8, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(n_codes, dim)
        self.codebook.weight.data.uniform_(-0.5, 0.5)
        self.beta = beta

    def forward(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, z.shape[1])
        distance = torch.cdist(flat.detach(), self.codebook.weight.detach())
        codes = distance.argmin(dim=1)
        quantized = self.codebook(codes)
        codebook_loss = F.mse_loss(quantized, flat.detach())
        commitment = F.mse_loss(flat, quantized.detach())
        quantized = flat + (quantized - flat).detach()
        n, c, h, w = z.shape
        return quantized.view(n, h, w, c).permute(0, 3, 1, 2), codebook_loss + self.beta * commitment, codes


class VQVAE(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1), nn.ReLU(), nn.Conv2d(16, dim, 4, stride=2, padding=1)
        )
        self.quantizer = VectorQuantizer(dim=dim)
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(dim, 16, 4, stride=2, padding=1), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        quantized, vq_loss, codes = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss, codes


def sprites(n, size=16):
    x = torch.zeros(n, 1, size, size)
    for i in range(n):
        r, c, s = torch.randint(1, 9, (3,)).tolist()
        x[i, 0, r:r + s // 2 + 2, c:c + s // 2 + 2] = 1.0
    return x


torch.manual_seed(1)
torch.set_num_threads(1)
data = sprites(128)
model = VQVAE()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(8):
    for idx in torch.randperm(len(data)).split(32):
        recon, vq_loss, codes = model(data[idx])
        recon_loss = F.mse_loss(recon, data[idx])
        loss = recon_loss + vq_loss
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 2 == 0:
        print(f"epoch {epoch} recon {recon_loss.item():.4f} vq {vq_loss.item():.4f} codes used {codes.unique().numel()}")
# /// correct wgan-penalty
# families = ["flags", "graph-break", "higher-order", "optimizer"]
# resembles = "frozen critic in the generator's step, no_grad fakes, create_graph penalty"
# ///
from contextlib import contextmanager

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, noise=4, hidden=32):
        super().__init__()
        self.noise = noise
        self.net = nn.Sequential(nn.Linear(noise, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, count):
        return self.net(torch.randn(count, self.noise))


class Critic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


@contextmanager
def frozen(module):
    flags = [p.requires_grad for p in module.parameters()]
    module.requires_grad_(False)
    try:
        yield module
    finally:
        for p, flag in zip(module.parameters(), flags):
            p.requires_grad_(flag)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    slope, = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def triangle(count):
    corners = torch.tensor([[0.0, 1.0], [0.87, -0.5], [-0.87, -0.5]])
    return corners[torch.randint(3, (count,))] + 0.08 * torch.randn(count, 2)


class WassersteinTrainer:
    def __init__(self, critic_steps=3, weight=1.0, batch=64):
        self.generator, self.critic = Generator(), Critic()
        self.opt_g = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.5, 0.9))
        self.opt_c = torch.optim.Adam(self.critic.parameters(), lr=4e-3, betas=(0.5, 0.9))
        self.critic_steps, self.weight, self.batch = critic_steps, weight, batch

    def train_critic(self):
        real = triangle(self.batch)
        with torch.no_grad():
            fake = self.generator(self.batch)
        gap = self.critic(real).mean() - self.critic(fake).mean()
        self.opt_c.zero_grad()
        (self.weight * gradient_penalty(self.critic, real, fake) - gap).backward()
        self.opt_c.step()
        return gap.item()

    def train_generator(self):
        with frozen(self.critic) as critic:
            loss = -critic(self.generator(self.batch)).mean()
            self.opt_g.zero_grad()
            loss.backward()
            self.opt_g.step()

    def __iter__(self):
        while True:
            gaps = [self.train_critic() for _ in range(self.critic_steps)]
            self.train_generator()
            yield sum(gaps) / len(gaps)


torch.manual_seed(64)
trainer = WassersteinTrainer()
gaps = [gap for gap, _ in zip(trainer, range(90))]
with torch.inference_mode():
    corners = torch.tensor([[0.0, 1.0], [0.87, -0.5], [-0.87, -0.5]])
    distance = torch.cdist(trainer.generator(300), corners).amin(1).mean().item()
print(f"gap {max(gaps):.3f} -> {gaps[-1]:.3f}, mean distance to a corner {distance:.3f}")
