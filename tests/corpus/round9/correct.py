# /// correct averaged-weights
# families = ["in-place", "optimizer", "mode"]
# resembles = "best-state-aliases-weights"
# ///
import copy

import torch
import torch.nn as nn


class Averager:
    def __init__(self, model, decay):
        self.shadow = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for kept, live in zip(self.shadow.parameters(), model.parameters()):
            kept.lerp_(live, 1 - self.decay)
        for kept, live in zip(self.shadow.buffers(), model.buffers()):
            kept.copy_(live)


class Checkpointer:
    def __init__(self, higher_is_better=True):
        self.sign = 1 if higher_is_better else -1
        self.score, self.weights = None, None

    def offer(self, model, score):
        if self.score is None or self.sign * score > self.sign * self.score:
            self.score = score
            self.weights = {k: v.detach().clone() for k, v in model.state_dict().items()}


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def blobs(count, centres):
    y = torch.randint(0, len(centres), (count,))
    return centres[y] + torch.randn(count, centres.shape[1]), y


torch.manual_seed(8)
centres = 1.5 * torch.randn(4, 6)
train_x, train_y = blobs(160, centres)
valid_x, valid_y = blobs(160, centres)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
averager, checkpointer = Averager(model, decay=0.8), Checkpointer()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(160).split(40):
        loss = nn.functional.cross_entropy(model(train_x[rows]), train_y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        averager.update(model)
    checkpointer.offer(averager.shadow, accuracy(averager.shadow, valid_x, valid_y))
model.load_state_dict(checkpointer.weights)
print(f"best {checkpointer.score:.3f} restored {accuracy(model, valid_x, valid_y):.3f}")
# /// correct balanced-residuals
# families = ["retention", "higher-order", "scale"]
# resembles = "retain_graph; weights of the losses by .item()"
# ///
import torch
from torch import nn
from torch.autograd import grad


class Beam(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))

    def losses(self, inside, ends):
        inside = inside.requires_grad_()
        u = self.net(inside)
        u1, = grad(u.sum(), inside, create_graph=True)
        u2, = grad(u1.sum(), inside, create_graph=True)
        residual = u2 + torch.sin(torch.pi * inside)
        return {"equation": residual.square().mean(), "ends": self.net(ends).square().mean()}


class Balancer:
    def __init__(self, names, momentum=0.7):
        self.weights = {name: 1.0 for name in names}
        self.momentum = momentum

    def update(self, losses, parameters):
        sizes = {}
        for name, loss in losses.items():
            parts = grad(loss, parameters, retain_graph=True, allow_unused=True)
            sizes[name] = sum(p.square().sum() for p in parts if p is not None).sqrt().item()
        total = sum(sizes.values())
        for name, size in sizes.items():
            new = total / (size + 1e-8)
            self.weights[name] = self.momentum * self.weights[name] + (1 - self.momentum) * new


torch.manual_seed(20)
beam, balancer = Beam(), Balancer(["equation", "ends"])
parameters = list(beam.parameters())
optimizer = torch.optim.Adam(parameters, lr=5e-3)
ends = torch.tensor([[0.0], [1.0]])
for step in range(20):
    losses = beam.losses(torch.rand(40, 1), ends)
    if step % 5 == 0:
        balancer.update(losses, parameters)
    optimizer.zero_grad()
    sum(balancer.weights[name] * loss for name, loss in losses.items()).backward()
    optimizer.step()
print({name: round(loss.item(), 4) for name, loss in losses.items()}, balancer.weights)
# /// correct bfloat16-trainer
# families = ["numerics", "optimizer"]
# resembles = "clip-before-unscale"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Precision:
    dtype: torch.dtype = torch.bfloat16
    enabled: bool = True

    @property
    def needs_scaling(self):
        return self.enabled and self.dtype == torch.float16


class MaskedMean(nn.Module):
    def forward(self, hidden, mask):
        mask = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * mask).sum(1) / mask.sum(1).clamp(min=1)


class PairScorer(nn.Module):
    def __init__(self, vocab=60, width=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.encode = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))
        self.pool = MaskedMean()

    def forward(self, ids):
        return self.pool(self.encode(self.embed(ids)), ids != 0)


class Trainer:
    def __init__(self, model, precision, lr=5e-3, max_norm=1.0, temperature=0.1):
        self.model, self.precision = model, precision
        self.max_norm, self.temperature = max_norm, temperature
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cpu", enabled=precision.needs_scaling)

    def step(self, left, right):
        with torch.autocast("cpu", dtype=self.precision.dtype, enabled=self.precision.enabled):
            a, b = self.model(left), self.model(right)
        a, b = nn.functional.normalize(a.float(), dim=-1), nn.functional.normalize(b.float(), dim=-1)
        loss = nn.functional.cross_entropy(a @ b.T / self.temperature, torch.arange(len(a)))
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item(), norm.item()


torch.manual_seed(11)
trainer = Trainer(PairScorer(), Precision())
for step in range(14):
    left = torch.randint(1, 60, (24, 8))
    right = left[:, torch.randperm(8)].masked_fill(torch.rand(24, 8) < 0.3, 0)
    report = trainer.step(left, right)
print("loss %.3f norm %.3f" % report)
# /// correct binary-grating
# families = ["function", "graph-break", "in-place"]
# resembles = "a backward that is not the derivative of forward; None for an input; a clamp of a parameter"
# ///
import torch
from torch import nn


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x)
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * (x.abs() < 1.0), None


class Grating(nn.Module):
    def __init__(self, pixels):
        super().__init__()
        self.latent = nn.Parameter(0.3 * torch.randn(pixels))

    def forward(self):
        level = Binarize.apply(self.latent, 0.0)
        return torch.polar(torch.ones_like(level), torch.pi * level)

    @torch.no_grad()
    def confine(self):
        self.latent.clamp_(-0.99, 0.99)


def orders(field):
    return torch.fft.fft(field).abs().square() / len(field) ** 2


torch.manual_seed(33)
grating = Grating(64)
wanted = torch.zeros(64)
wanted[[3, 5, 59, 61]] = 0.2
optimizer = torch.optim.SGD(grating.parameters(), lr=20.0, momentum=0.9)
best, best_state = float("inf"), None
for step in range(30):
    loss = (orders(grating()) - wanted).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    grating.confine()
    if loss.item() < best:
        best, best_state = loss.item(), grating.latent.detach().clone()
print("best", best, int((best_state > 0).sum()), "pixels up")
# /// correct checkpointed-reservoir
# families = ["retention", "mode"]
# resembles = "dropout that is run twice, in a recomputation"
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.mix = nn.Conv1d(channels, channels, 3, padding=1, padding_mode="circular")
        self.gate = nn.Conv1d(channels, channels, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, u, dt):
        return u + dt * self.drop(torch.tanh(self.mix(u)) * torch.sigmoid(self.gate(u)))


class LongSimulation(nn.Module):
    def __init__(self, channels=4, segment=5):
        super().__init__()
        self.layer = Layer(channels)
        self.lift = nn.Parameter(torch.randn(channels, 1) / 2)
        self.segment = segment

    def advance(self, u, steps):
        for _ in range(steps):
            u = self.layer(u, 0.1)
        return u

    def forward(self, u, steps):
        u = u * self.lift
        for _ in range(steps // self.segment):
            u = checkpoint(self.advance, u, self.segment, use_reentrant=False)
        return u.mean(1)


torch.manual_seed(14)
model = LongSimulation()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
grid = torch.linspace(0, 2 * torch.pi, 25)[:-1]
for step in range(12):
    shift = torch.rand(8, 1) * 2 * torch.pi
    start, end = torch.sin(grid + shift), torch.sin(grid + shift - 0.6)
    loss = nn.functional.mse_loss(model(start.unsqueeze(1), 20), end)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
# /// correct codebook-by-averages
# families = ["graph-break", "optimizer", "in-place"]
# resembles = "a codebook without gradients that no optimizer holds and that is written in place in forward"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class AveragedCodebook(nn.Module):
    def __init__(self, codes, width, decay=0.9, epsilon=1e-5):
        super().__init__()
        self.decay, self.epsilon = decay, epsilon
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("counts", torch.ones(codes))
        self.register_buffer("sums", self.codes.clone())

    @torch.no_grad()
    def update(self, z, index):
        hits = F.one_hot(index, len(self.codes)).to(z.dtype)
        self.counts.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hits.T @ z, alpha=1 - self.decay)
        total = self.counts.sum()
        smooth = (self.counts + self.epsilon) / (total + len(self.codes) * self.epsilon) * total
        self.codes.copy_(self.sums / smooth.unsqueeze(1))

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes).argmin(1)
        quantized = self.codes[index]
        if self.training:
            self.update(z.detach(), index)
        commitment = F.mse_loss(z, quantized)
        return z + (quantized - z).detach(), commitment, index


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv1d(1, 8, 4, stride=4)
        self.codebook = AveragedCodebook(16, 8)
        self.up = nn.ConvTranspose1d(8, 1, 4, stride=4)

    def forward(self, x):
        z = self.down(x)
        batch, width, length = z.shape
        flat, commitment, index = self.codebook(z.transpose(1, 2).reshape(-1, width))
        return self.up(flat.view(batch, length, width).transpose(1, 2)), commitment, index


torch.manual_seed(139)
model = Autoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(20):
    x = torch.sin(6.28 * torch.rand(32, 1, 1) + torch.linspace(0, 9, 32))
    output, commitment, index = model(x)
    loss = F.mse_loss(output, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), len(index.unique()))
# /// correct conflicting-tasks
# families = ["accumulation", "retention"]
# resembles = "retain-graph-without-need"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class TwoHeads(nn.Module):
    def __init__(self, features=8, width=24):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.click, self.dwell = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x):
        h = self.shared(x)
        return self.click(h).squeeze(-1), self.dwell(h).squeeze(-1)


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def project(gradient, others):
    result = gradient.clone()
    for other in others:
        dot = result @ other
        if dot < 0:
            result -= dot / other.square().sum().clamp(min=1e-12) * other
    return result


def assign(parameters, vector):
    for p, part in zip(parameters, vector.split([p.numel() for p in parameters])):
        p.grad = part.view_as(p).clone()


class SurgeryStep:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.shared = list(model.shared.parameters())

    def __call__(self, losses):
        self.optimizer.zero_grad()
        per_task = [flat(torch.autograd.grad(loss, self.shared, retain_graph=True)) for loss in losses]
        sum(losses).backward()
        merged = [project(g, [o for o in per_task if o is not g]) for g in per_task]
        assign(self.shared, torch.stack(merged).sum(0))
        self.optimizer.step()


torch.manual_seed(6)
model = TwoHeads()
step = SurgeryStep(model, torch.optim.Adam(model.parameters(), lr=5e-3))
for iteration in range(20):
    x = torch.randn(64, 8)
    click, dwell = model(x)
    losses = [
        F.binary_cross_entropy_with_logits(click, (x[:, 0] > 0).float()),
        F.mse_loss(dwell, x[:, 1] - x[:, 0]),
    ]
    step(losses)
print([round(loss.item(), 3) for loss in losses])
# /// correct discrete-latents
# families = ["graph-break", "numerics"]
# resembles = "argmax and one_hot in the forward pass, with the gradient of the softmax"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class CategoricalLatent(nn.Module):
    def __init__(self, inputs, groups, classes, mix=0.01):
        super().__init__()
        self.logits = nn.Linear(inputs, groups * classes)
        self.groups, self.classes, self.mix = groups, classes, mix

    def forward(self, h):
        probs = self.logits(h).view(-1, self.groups, self.classes).softmax(-1)
        probs = (1 - self.mix) * probs + self.mix / self.classes
        if self.training:
            index = torch.distributions.Categorical(probs=probs).sample()
        else:
            index = probs.argmax(-1)
        hard = F.one_hot(index, self.classes).to(probs.dtype)
        return hard + probs - probs.detach(), probs


def balanced_kl(posterior, prior, free=0.05, weight=0.8):
    def kl(p, q):
        return (p * (p.log() - q.log())).sum((-1, -2)).mean().clamp(min=free)
    return weight * kl(posterior.detach(), prior) + (1 - weight) * kl(posterior, prior.detach())


class Model(nn.Module):
    def __init__(self, inputs=10, groups=4, classes=5):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 32), nn.ELU())
        self.latent = CategoricalLatent(32, groups, classes)
        self.prior = nn.Parameter(torch.zeros(groups, classes))
        self.decoder = nn.Sequential(nn.Linear(groups * classes, 32), nn.ELU(), nn.Linear(32, inputs))

    def forward(self, x):
        code, posterior = self.latent(self.encoder(x))
        prior = self.prior.softmax(-1).expand_as(posterior)
        return self.decoder(code.flatten(1)), balanced_kl(posterior, prior)


torch.manual_seed(127)
x = torch.randn(16, 10)[torch.randint(0, 16, (256,))] + 0.1 * torch.randn(256, 10)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(4):
    model.train()
    for batch in x[torch.randperm(256)].split(64):
        output, kl = model(batch)
        loss = F.mse_loss(output, batch) + 0.1 * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(model(x)[0], x).item(), kl.item())
# /// correct distilled-ranker
# families = ["graph-break", "mode", "loss"]
# resembles = "no-grad-around-forward"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class Distiller(nn.Module):
    def __init__(self, teacher, student, temperature=3.0, mix=0.7):
        super().__init__()
        self.student = student
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)
        self.temperature, self.mix = temperature, mix

    @torch.no_grad()
    def soft_targets(self, x):
        return (self.teacher(x) / self.temperature).log_softmax(-1)

    def forward(self, x, y):
        logits = self.student(x)
        soft = F.kl_div(
            (logits / self.temperature).log_softmax(-1), self.soft_targets(x), reduction="batchmean", log_target=True
        )
        return self.mix * self.temperature ** 2 * soft + (1 - self.mix) * F.cross_entropy(logits, y)


def examples(count):
    x = torch.randn(count, 12)
    return x, (x[:, :4] + 0.5 * x[:, 4:8]).argmax(1)


def train(parameters, loss_of, steps, lr):
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for _ in range(steps):
        loss = loss_of(*examples(96))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(5)
teacher, student = mlp(12, 64, 64, 4), mlp(12, 10, 4)
first = train(teacher.parameters(), lambda x, y: F.cross_entropy(teacher(x), y), 15, 1e-2)
distiller = Distiller(teacher, student)
second = train(distiller.student.parameters(), distiller, 15, 2e-2)
print(f"teacher {first:.3f} distillation {second:.3f}")
# /// correct docking-by-multipliers
# families = ["optimizer", "flags", "leaf"]
# resembles = "multipliers that no optimizer trains; gradients assigned by hand without zero_grad; an in-place edit of a leaf"
# ///
import torch


def rollout(controls, start, dt=0.1):
    position, velocity = start
    for push in controls:
        velocity = velocity + dt * push
        position = position + dt * velocity
    return torch.cat([position, velocity])


class AugmentedLagrangian:
    def __init__(self, constraints, penalty=2.0):
        self.multiplier = torch.zeros(constraints)
        self.penalty = penalty

    def __call__(self, cost, gap):
        return cost + self.multiplier @ gap + 0.5 * self.penalty * gap.square().sum()

    @torch.no_grad()
    def update(self, gap):
        self.multiplier += self.penalty * gap
        self.penalty *= 1.5


torch.manual_seed(1)
start = (torch.tensor([1.0, -0.5]), torch.zeros(2))
controls = torch.zeros(20, 2, requires_grad=True)
lagrangian = AugmentedLagrangian(4)
optimizer = torch.optim.SGD([controls], lr=0.2)
for outer in range(5):
    for inner in range(6):
        gap = rollout(controls, start)
        objective = lagrangian(0.05 * controls.square().sum(), gap)
        controls.grad, = torch.autograd.grad(objective, controls)
        optimizer.step()
        with torch.no_grad():
            controls.clamp_(-3.0, 3.0)
    lagrangian.update(gap)
    print(outer, round(objective.item(), 4), round(gap.norm().item(), 4))
# /// correct dropout-as-uncertainty
# families = ["mode"]
# resembles = "dropout in train mode during evaluation"
# ///
import torch
from torch import nn


class Closure(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, width), nn.LayerNorm(width), nn.SiLU(), nn.Dropout(0.15), nn.Linear(width, 2),
        )

    def forward(self, x):
        mean, log_variance = self.net(x).unbind(-1)
        return mean, log_variance.clamp(-6, 3)


@torch.no_grad()
def uncertainty(model, x, passes=20):
    model.eval()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.train()
    draws = torch.stack([model(x)[0] for _ in range(passes)])
    model.train()
    return draws.mean(0), draws.std(0)


def acquire(model, pool, count):
    _, spread = uncertainty(model, pool)
    return pool[spread.topk(count).indices]


def stress(x):
    return x[:, 0] * x[:, 1].cos() + 0.05 * torch.randn(len(x))


torch.manual_seed(39)
model = Closure()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
known = torch.randn(24, 2)
measured = stress(known)
for round_number in range(4):
    for _ in range(6):
        mean, log_variance = model(known)
        loss = nn.functional.gaussian_nll_loss(mean, measured, log_variance.exp())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    asked = acquire(model, 2 * torch.randn(100, 2), 6)
    known, measured = torch.cat([known, asked]), torch.cat([measured, stress(asked)])
    print(round_number, len(known), round(loss.item(), 4))
# /// correct ensemble-by-vmap
# families = ["optimizer", "leaf", "graph-break"]
# resembles = "detached parameters, replaced in each step, without an optimizer"
# ///
import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x))).squeeze(-1)


class Ensemble:
    def __init__(self, members, lr):
        models = [Surrogate() for _ in range(members)]
        self.params, self.buffers = stack_module_state(models)
        self.params = {name: value.detach() for name, value in self.params.items()}
        self.template = copy.deepcopy(models[0]).to("meta")
        self.velocity = {name: torch.zeros_like(value) for name, value in self.params.items()}
        self.lr = lr

    def predict(self, params, x):
        return functional_call(self.template, params, (x,))

    def loss(self, params, x, y):
        return (self.predict(params, x) - y).square().mean()

    def step(self, x, y):
        grads, losses = vmap(grad_and_value(self.loss))(self.params, x, y)
        for name, g in grads.items():
            self.velocity[name] = 0.9 * self.velocity[name] + g
            self.params[name] = self.params[name] - self.lr * self.velocity[name]
        return losses

    def spread(self, x):
        return vmap(self.predict, (0, None))(self.params, x).std(0)


torch.manual_seed(38)
ensemble = Ensemble(5, lr=0.03)
x = 2 * torch.rand(60, 2) - 1
y = (3 * x[:, 0]).sin() + x[:, 1] ** 2
for step in range(20):
    rows = torch.randint(0, 60, (5, 32))
    losses = ensemble.step(x[rows], y[rows])
    if step % 5 == 0:
        print(step, losses.mean().item())
print("spread", ensemble.spread(torch.tensor([[0.0, 0.0], [3.0, 3.0]])).tolist())
# /// correct episodes-of-a-walker
# families = ["accumulation", "retention", "loss"]
# resembles = "backward once per episode without zero_grad, the step after several"
# ///
import torch
from torch import nn
from torch.distributions import Bernoulli


class Walker:
    limit = 10

    def reset(self):
        self.place, self.age = float(torch.randint(-2, 3, ())), 0
        return torch.tensor([self.place / 5])

    def step(self, right):
        self.place += 1.0 if right else -1.0
        self.age += 1
        return torch.tensor([self.place / 5]), -abs(self.place) / 5, self.age == self.limit


class Reinforce:
    def __init__(self, episodes_per_step=4, gamma=0.9, lr=2e-2):
        self.policy = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr, maximize=True)
        self.episodes_per_step, self.gamma = episodes_per_step, gamma
        self.baseline = 0.0

    def play(self, env):
        state, done, log_probs, rewards = env.reset(), False, [], []
        while not done:
            dist = Bernoulli(logits=self.policy(state).squeeze())
            action = dist.sample()
            state, reward, done = env.step(bool(action))
            log_probs.append(dist.log_prob(action))
            rewards.append(reward)
        return torch.stack(log_probs), rewards

    def returns(self, rewards):
        total, out = 0.0, []
        for reward in rewards[::-1]:
            total = reward + self.gamma * total
            out.append(total)
        return torch.tensor(out[::-1])

    def learn(self, env, steps):
        for _ in range(steps):
            for _ in range(self.episodes_per_step):
                log_probs, rewards = self.play(env)
                goal = self.returns(rewards)
                objective = (log_probs * (goal - self.baseline)).sum()
                (objective / self.episodes_per_step).backward()
                self.baseline = 0.9 * self.baseline + 0.1 * goal.mean().item()
            self.optimizer.step()
            self.optimizer.zero_grad()
            yield self.baseline


torch.manual_seed(107)
agent = Reinforce()
print([round(value, 3) for value in agent.learn(Walker(), steps=6)])
# /// correct first-order-maml
# families = ["higher-order", "graph-break", "accumulation"]
# resembles = "an inner loop without create_graph whose outer gradients are written into .grad by hand"
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def few_shot_task(classes=3, shots=4, queries=6, dim=5):
    centres = 1.5 * torch.randn(classes, dim)
    labels = torch.arange(classes)
    support, query = labels.repeat(shots), labels.repeat(queries)
    return (centres[support] + torch.randn(len(support), dim), support), (centres[query] + torch.randn(len(query), dim), query)


class FirstOrderMAML:
    def __init__(self, model, inner_lr=0.1, inner_steps=3, outer_lr=5e-3):
        self.model = model
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.outer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def loss(self, weights, batch):
        x, y = batch
        return F.cross_entropy(functional_call(self.model, weights, (x,)), y)

    def adapt(self, support):
        weights = {name: p.detach().clone().requires_grad_(True) for name, p in self.model.named_parameters()}
        for _ in range(self.inner_steps):
            grads = torch.autograd.grad(self.loss(weights, support), list(weights.values()))
            weights = {name: (w - self.inner_lr * g).detach().requires_grad_(True) for (name, w), g in zip(weights.items(), grads)}
        return weights

    def meta_step(self, tasks):
        self.outer.zero_grad(set_to_none=False)
        for parameter in self.model.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        total = 0.0
        for support, query in tasks:
            weights = self.adapt(support)
            loss = self.loss(weights, query)
            for parameter, grad in zip(self.model.parameters(), torch.autograd.grad(loss, list(weights.values()))):
                parameter.grad.add_(grad, alpha=1 / len(tasks))
            total += loss.item() / len(tasks)
        self.outer.step()
        return total


torch.manual_seed(113)
meta = FirstOrderMAML(nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 3)))
curve = [meta.meta_step([few_shot_task() for _ in range(3)]) for _ in range(8)]
print(" ".join(f"{value:.3f}" for value in curve))
# /// correct free-adversarial-replay
# families = ["leaf", "in-place", "accumulation"]
# resembles = "one backward for both players, a persistent perturbation written in place, a replayed batch"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(inplace=True), nn.Linear(32, 32), nn.ReLU(inplace=True))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))


class FreeTrainer:
    def __init__(self, model, batch, shape, radius=0.2, replays=3, lr=0.05):
        self.model, self.radius, self.replays = model, radius, replays
        self.delta = torch.zeros(batch, *shape, requires_grad=True)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)

    def replay(self, x, y):
        for _ in range(self.replays):
            loss = F.cross_entropy(self.model((x + self.delta).clamp(0, 1)), y)
            self.optimizer.zero_grad()
            self.delta.grad = None
            loss.backward()
            with torch.no_grad():
                self.delta.add_(self.radius * self.delta.grad.sign()).clamp_(-self.radius, self.radius)
            self.optimizer.step()
        return loss.item()


def loader(centres, steps, batch):
    for _ in range(steps):
        y = torch.randint(0, len(centres), (batch,))
        yield (centres[y] + 0.1 * torch.randn(batch, 16)).clamp(0, 1), y


torch.manual_seed(149)
centres = torch.rand(3, 16)
trainer = FreeTrainer(Net(), batch=32, shape=(16,))
for x, y in loader(centres, steps=8, batch=32):
    loss = trainer.replay(x, y)
x, y = next(loader(centres, 1, 200))
with torch.no_grad():
    clean = (trainer.model(x).argmax(1) == y).float().mean().item()
print(f"loss {loss:.3f} clean accuracy {clean:.2f}")
# /// correct hard-feature-selector
# families = ["graph-break"]
# resembles = "argmax-breaks-graph"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class HardSelector(nn.Module):
    def __init__(self, features, picks):
        super().__init__()
        self.logits = nn.Parameter(0.01 * torch.randn(picks, features))

    def forward(self, x, temperature):
        if self.training:
            noise = -torch.empty_like(self.logits).exponential_().log()
            soft = ((self.logits + noise) / temperature).softmax(-1)
        else:
            soft = self.logits.softmax(-1)
        hard = F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft)
        choice = hard + soft - soft.detach()
        return x @ choice.T


class SelectThenClassify(nn.Module):
    def __init__(self, features=10, picks=3, classes=2):
        super().__init__()
        self.select = HardSelector(features, picks)
        self.net = nn.Sequential(nn.Linear(picks, 16), nn.ReLU(), nn.Linear(16, classes))

    def forward(self, x, temperature=1.0):
        return self.net(self.select(x, temperature))


def anneal(step, steps, start=2.0, end=0.5):
    return start * (end / start) ** (step / (steps - 1))


def main(steps=30):
    torch.manual_seed(3)
    model = SelectThenClassify()
    optimizer = torch.optim.Adam([
        {"params": model.select.parameters(), "lr": 5e-2},
        {"params": model.net.parameters(), "lr": 1e-2},
    ])
    for step in range(steps):
        x = torch.randn(128, 10)
        y = (x[:, 2] * 2 - x[:, 6] > 0).long()
        loss = F.cross_entropy(model(x, anneal(step, steps)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    print(f"loss {loss.item():.3f} accuracy {accuracy:.2f} picks {model.select.logits.argmax(1).tolist()}")


main()
# /// correct implicit-layer-with-adjoint-hook
# families = ["graph-break", "hook", "retention"]
# resembles = "a fixed point without a graph; a hook registered in forward; retain_graph"
# ///
import torch
from torch import autograd, nn


def iterate(f, z, tol=1e-4, limit=80):
    for _ in range(limit):
        new = f(z)
        if (new - z).norm() <= tol * (1e-6 + new.norm()):
            return new
        z = new
    return z


class Balance(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.outer = nn.Linear(inputs, width, bias=False)
        with torch.no_grad():
            self.inner.weight.mul_(0.5)

    def f(self, z, x):
        return torch.tanh(self.inner(z) + self.outer(x))

    def forward(self, x):
        with torch.no_grad():
            fixed = iterate(lambda z: self.f(z, x), x.new_zeros(len(x), self.inner.in_features))
        out = self.f(fixed, x)
        if not out.requires_grad:
            return out
        leaf = out.detach().requires_grad_()
        again = self.f(leaf, x)

        def adjoint(grad):
            return iterate(lambda g: autograd.grad(again, leaf, g, retain_graph=True)[0] + grad, grad)

        out.register_hook(adjoint)
        return out


torch.manual_seed(12)
layer, readout = Balance(3, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*layer.parameters(), *readout.parameters()], lr=1e-2)
for step in range(15):
    x = torch.randn(32, 3)
    loss = (readout(layer(x))[:, 0] - x.prod(1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
# /// correct lazy-penalty-on-real
# families = ["higher-order", "flags", "accumulation"]
# resembles = "a penalty with its own backward and step now and then, a discriminator that is switched off for the generator"
# ///
import torch
from torch import nn
import torch.nn.functional as F


def set_grad(module, on):
    for parameter in module.parameters():
        parameter.requires_grad_(on)


class Discriminator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first, self.second, self.out = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 1)

    def forward(self, x):
        h = F.softplus(self.first(x))
        return self.out(F.softplus(self.second(h)) + h).squeeze(1)


def r1(discriminator, real):
    real = real.detach().clone().requires_grad_(True)
    slope, = torch.autograd.grad(discriminator(real).sum(), real, create_graph=True)
    return slope.square().sum(1).mean()


class Players:
    def __init__(self, every=4, gamma=1.0):
        self.generator = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
        self.discriminator = Discriminator()
        self.generator_opt = torch.optim.Adam(self.generator.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.discriminator_opt = torch.optim.Adam(self.discriminator.parameters(), lr=2e-3, betas=(0.0, 0.99))
        self.every, self.gamma = every, gamma

    def optimise(self, optimizer, loss):
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    def turn(self, step, real):
        set_grad(self.discriminator, True)
        with torch.no_grad():
            fake = self.generator(torch.randn(len(real), 3))
        loss = F.softplus(self.discriminator(fake)).mean() + F.softplus(-self.discriminator(real)).mean()
        report = [self.optimise(self.discriminator_opt, loss)]
        if step % self.every == 0:
            self.optimise(self.discriminator_opt, 0.5 * self.gamma * self.every * r1(self.discriminator, real))
        set_grad(self.discriminator, False)
        fake = self.generator(torch.randn(len(real), 3))
        report.append(self.optimise(self.generator_opt, F.softplus(-self.discriminator(fake)).mean()))
        return report


torch.manual_seed(109)
players = Players()
for step in range(10):
    real = torch.randn(64, 2) * torch.tensor([0.2, 0.8]) + torch.tensor([1.0, 0.0])
    report = players.turn(step, real)
print("discriminator {:.3f} generator {:.3f}".format(*report))
# /// correct linear-probe
# families = ["mode", "flags"]
# resembles = "frozen-batchnorm-in-train-mode"
# ///
import torch
from torch import nn


class FrozenBackbone(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        for p in self.parameters():
            p.requires_grad_(False)
        self.eval()

    def train(self, mode=True):
        return super().train(False)

    def forward(self, x):
        with torch.no_grad():
            return self.layers(x)


class Probe(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = FrozenBackbone(backbone)
        self.head = nn.Sequential(nn.BatchNorm1d(width), nn.Dropout(0.2), nn.Linear(width, classes))

    def forward(self, x):
        return self.head(self.backbone(x))


def backbone(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
    )


def fit(model, images, labels, epochs):
    trainable = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trainable, lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        model.train()
        for rows in torch.randperm(len(images)).split(20):
            loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, (model(images).argmax(1) == labels).float().mean().item())


torch.manual_seed(4)
labels = torch.randint(0, 3, (60,))
images = torch.randn(60, 1, 10, 10)
images[:, 0, :5, :5] += labels[:, None, None]
images[:, 0, 5:, 5:] -= (labels[:, None, None] == 1).float()
fit(Probe(backbone(), 64, 3), images, labels, epochs=6)
# /// correct newton-by-conjugate-gradients
# families = ["higher-order", "leaf", "optimizer"]
# resembles = "create_graph and no optimizer; a detached gradient; a leaf edited under no_grad"
# ///
import torch


def logistic(weights, features, labels, ridge):
    margins = labels * (features @ weights)
    return torch.nn.functional.softplus(-margins).mean() + 0.5 * ridge * weights.square().sum()


def conjugate_gradients(apply, b, iterations=10, tol=1e-8):
    x = torch.zeros_like(b)
    r = b.clone()
    p, rr = r, r @ r
    for _ in range(iterations):
        q = apply(p)
        step = rr / (p @ q)
        x = x + step * p
        r = r - step * q
        new = r @ r
        if new < tol:
            break
        p, rr = r + new / rr * p, new
    return x


def newton_step(objective, weights):
    value = objective(weights)
    gradient, = torch.autograd.grad(value, weights, create_graph=True)

    def hessian_times(v):
        return torch.autograd.grad(gradient, weights, v, retain_graph=True)[0]

    direction = conjugate_gradients(hessian_times, gradient.detach())
    with torch.no_grad():
        rate = 1.0
        while objective(weights - rate * direction) > value - 1e-4 * rate * (gradient @ direction):
            rate *= 0.5
            if rate < 1e-3:
                break
        weights -= rate * direction
    return value.item(), gradient.detach().norm().item()


torch.manual_seed(24)
features = torch.randn(100, 6, dtype=torch.float64)
labels = torch.sign(features @ torch.randn(6, dtype=torch.float64) + 0.5 * torch.randn(100, dtype=torch.float64))
weights = torch.zeros(6, dtype=torch.float64, requires_grad=True)
for iteration in range(5):
    value, size = newton_step(lambda w: logistic(w, features, labels, 1e-2), weights)
    print(iteration, f"{value:.6f} {size:.2e}")
# /// correct noisy-mean-teacher
# families = ["mode", "loss", "optimizer", "flags"]
# resembles = "a teacher in train mode, without gradients, whose weights are averages, and kl_div with log_target"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.3),
                                  nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.body(x)).log_softmax(1)


def consistency(student, teacher):
    return F.kl_div(student, teacher, reduction="batchmean", log_target=True)


def rise(step, length=10):
    share = min(step / length, 1.0)
    return float(torch.exp(torch.tensor(-5.0 * (1 - share) ** 2)))


torch.manual_seed(157)
labels = torch.randint(0, 4, (300,))
x = 1.2 * torch.randn(4, 8)[labels] + torch.randn(300, 8)
labelled, unlabelled, held_out = x[:40], x[40:200], x[200:]
student = Net()
teacher = AveragedModel(student, multi_avg_fn=get_ema_multi_avg_fn(0.9))
teacher.train()
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for step in range(20):
    rows, pool = torch.randint(0, 40, (20,)), torch.randint(0, 160, (40,))
    inputs = torch.cat([labelled[rows], unlabelled[pool]])
    output = student(inputs + 0.1 * torch.randn_like(inputs))
    with torch.no_grad():
        belief = teacher(inputs + 0.1 * torch.randn_like(inputs))
    loss = F.nll_loss(output[:20], labels[:40][rows]) + rise(step) * consistency(output, belief)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    teacher.update_parameters(student)
teacher.eval()
with torch.no_grad():
    accuracy = (teacher(held_out).argmax(1) == labels[200:]).float().mean().item()
print(f"loss {loss.item():.3f} accuracy of the teacher {accuracy:.2f}")
# /// correct one-cycle-regression
# families = ["optimizer", "retention", "loss"]
# resembles = "scheduler-stepped-per-batch"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mixer(nn.Module):
    def __init__(self, length, channels, hidden=32):
        super().__init__()
        self.time = nn.Sequential(nn.LayerNorm(length), nn.Linear(length, hidden), nn.GELU(), nn.Linear(hidden, length))
        self.channel = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, hidden), nn.GELU(), nn.Linear(hidden, channels))
        self.out = nn.Linear(length * channels, 1)

    def forward(self, x):
        x = x + self.time(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.channel(x)
        return self.out(x.flatten(1)).squeeze(-1)


def groups(model, weight_decay):
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    return [{"params": matrices, "weight_decay": weight_decay}, {"params": vectors, "weight_decay": 0.0}]


def fit(model, loader, epochs, peak):
    optimizer = torch.optim.AdamW(groups(model, 1e-2), lr=peak / 25)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=peak, total_steps=epochs * len(loader))
    for epoch in range(epochs):
        running = torch.zeros(())
        for x, y in loader:
            loss = nn.functional.huber_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            running += loss.detach()
        print(f"epoch {epoch} huber {running.item() / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.2e}")


torch.manual_seed(13)
x = torch.randn(128, 10, 3).cumsum(1) / 3
y = x[:, -1, 0] - x[:, 0, 1]
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
fit(Mixer(10, 3), loader, epochs=6, peak=1e-2)
# /// correct perturbed-embeddings
# families = ["accumulation", "in-place"]
# resembles = "missing-zero-grad"
# ///
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def perturbed(weight, epsilon):
    backup = weight.detach().clone()
    norm = weight.grad.norm()
    with torch.no_grad():
        if norm > 0:
            weight.add_(epsilon * weight.grad / norm)
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(backup)


class BagOfWords(nn.Module):
    def __init__(self, vocab=70, width=16, classes=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.attend = nn.Linear(width, 1)
        self.out = nn.Linear(width, classes)

    def forward(self, ids):
        words = self.embed(ids)
        scores = self.attend(torch.tanh(words)).squeeze(-1).masked_fill(ids == 0, float("-inf"))
        return self.out((scores.softmax(-1).unsqueeze(-1) * words).sum(1))


def sentences(count, length=8):
    ids = torch.randint(1, 70, (count, length))
    labels = F.one_hot(ids % 3, 3).sum(1).argmax(1)
    return ids.masked_fill(torch.arange(length) >= torch.randint(2, length + 1, (count, 1)), 0), labels


def adversarial_step(model, optimizer, ids, labels, epsilon):
    optimizer.zero_grad()
    clean = F.cross_entropy(model(ids), labels)
    clean.backward()
    with perturbed(model.embed.weight, epsilon):
        attacked = F.cross_entropy(model(ids), labels)
        attacked.backward()
    optimizer.step()
    return clean.item(), attacked.item()


torch.manual_seed(10)
model = BagOfWords()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
history = []
for step in range(20):
    ids, labels = sentences(48)
    history.append(adversarial_step(model, optimizer, ids, labels, epsilon=0.5))
print(history[0], history[-1])
# /// correct projected-task-gradients
# families = ["retention", "accumulation", "optimizer"]
# resembles = "retain_graph over several losses of one forward pass, and gradients assigned by hand before the step"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(7, 30), nn.GELU(), nn.Linear(30, 30), nn.GELU())
        self.heads = nn.ModuleList([nn.Linear(30, 1), nn.Linear(30, 4), nn.Linear(30, 7)])

    def forward(self, x):
        h = self.trunk(x)
        return [head(h) for head in self.heads]


def losses_of(model, x):
    place, kind, back = model(x)
    quadrant = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()
    return [F.mse_loss(place.squeeze(1), x.prod(1)), F.cross_entropy(kind, quadrant), F.l1_loss(back, x.flip(1))]


class Surgery:
    def __init__(self, optimizer, shared):
        self.optimizer, self.shared = optimizer, list(shared)

    def flatten(self):
        return torch.cat([p.grad.flatten() for p in self.shared])

    def backward(self, losses):
        self.optimizer.zero_grad(set_to_none=True)
        flat = []
        for number, loss in enumerate(losses, 1):
            loss.backward(retain_graph=number < len(losses))
            flat.append(self.flatten())
            for parameter in self.shared:
                parameter.grad = None
        merged = sum(self.project(one, [other for other in flat if other is not one]) for one in flat)
        for parameter, piece in zip(self.shared, merged.split([p.numel() for p in self.shared])):
            parameter.grad = piece.view_as(parameter).clone()

    @staticmethod
    def project(grad, others):
        for place in torch.randperm(len(others)).tolist():
            other = others[place]
            inner = grad @ other
            if inner < 0:
                grad = grad - inner / other.square().sum().clamp(min=1e-12) * other
        return grad


torch.manual_seed(163)
model = Shared()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
surgery = Surgery(optimizer, model.trunk.parameters())
for step in range(15):
    losses = losses_of(model, torch.rand(64, 7) * 2 - 1)
    surgery.backward(losses)
    optimizer.step()
print([round(loss.item(), 3) for loss in losses])
# /// correct prototypes-and-codes
# families = ["graph-break", "in-place", "optimizer"]
# resembles = "targets under no_grad, weights normalised in place under no_grad, a gradient set to None before the step"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SwAV(nn.Module):
    def __init__(self, inputs=12, width=8, prototypes=10):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, width))
        self.prototypes = nn.Linear(width, prototypes, bias=False)

    def forward(self, x):
        z = F.normalize(self.encoder(x), dim=1)
        return self.prototypes(z)

    @torch.no_grad()
    def normalize_prototypes(self):
        self.prototypes.weight.copy_(F.normalize(self.prototypes.weight, dim=1))


@torch.no_grad()
def sinkhorn(scores, epsilon=0.05, iterations=3):
    q = torch.exp((scores - scores.max()) / epsilon).T
    q /= q.sum()
    for _ in range(iterations):
        q /= q.sum(dim=1, keepdim=True) * q.shape[0]
        q /= q.sum(dim=0, keepdim=True) * q.shape[1]
    return (q * q.shape[1]).T


def swapped_loss(first, second, temperature=0.1):
    codes = sinkhorn(first), sinkhorn(second)
    return -0.5 * sum((q * F.log_softmax(s / temperature, dim=1)).sum(1).mean() for q, s in zip(codes, (second, first)))


def jitter(x):
    return x + 0.15 * torch.randn_like(x)


torch.manual_seed(103)
data = torch.randn(6, 12)[torch.randint(0, 6, (240,))] + 0.2 * torch.randn(240, 12)
model = SwAV()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
freeze_prototypes_for = 4
step = 0
for epoch in range(3):
    for batch in data[torch.randperm(240)].split(60):
        model.normalize_prototypes()
        loss = swapped_loss(model(jitter(batch)), model(jitter(batch)))
        optimizer.zero_grad()
        loss.backward()
        if step < freeze_prototypes_for:
            model.prototypes.weight.grad = None
        optimizer.step()
        step += 1
    print(epoch, round(loss.item(), 4))
# /// correct relaxing-on-a-learned-potential
# families = ["higher-order", "flags", "mode"]
# resembles = "forces without create_graph; a frozen network; a state detached in each step"
# ///
import torch
from torch import nn


class Potential(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.pairs = torch.triu_indices(atoms, atoms, 1)
        self.net = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 1))

    def forward(self, positions):
        i, j = self.pairs
        r = (positions[..., i, :] - positions[..., j, :]).norm(dim=-1, keepdim=True)
        return self.net(r).sum((-1, -2))


def fit(potential, steps):
    optimizer = torch.optim.Adam(potential.parameters(), lr=2e-2)
    for _ in range(steps):
        r = 0.7 + 2 * torch.rand(64, 1)
        loss = (potential.net(r) - (1 - torch.exp(-1.2 * (r - 1.3))) ** 2).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def dynamics(potential, positions, steps, dt=0.02, friction=0.9):
    velocity = torch.zeros_like(positions)
    energies = []
    for _ in range(steps):
        positions = positions.detach().requires_grad_()
        energy = potential(positions)
        force = -torch.autograd.grad(energy, positions)[0]
        velocity = friction * velocity + dt * force
        positions = positions + dt * velocity
        energies.append(energy.item())
    return positions.detach(), energies


torch.manual_seed(25)
potential = Potential(5)
print("fit", fit(potential, 25))
potential.requires_grad_(False).eval()
positions, energies = dynamics(potential, 1.2 * torch.randn(5, 3), 30)
print(energies[0], energies[-1])
# /// correct replicas-without-sync
# families = ["accumulation"]
# resembles = "no_sync; zero_grad after the step; a head that is never used"
# ///
import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Coupled(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(6, 24)
        self.flux = nn.Linear(24, 1)
        self.spare = nn.Linear(24, 3)

    def forward(self, x, spectra=False):
        h = torch.relu(self.encode(x))
        return self.spare(h) if spectra else self.flux(h).squeeze(-1)


def micro_batches(count, size):
    for number in range(count):
        x = torch.randn(size, 6)
        yield number == count - 1, x, x[:, 0] * x[:, 1] + 0.1 * x[:, 2]


def main():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    torch.manual_seed(26)
    model = DistributedDataParallel(Coupled(), find_unused_parameters=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    accumulate, reports = 3, []
    for step in range(6):
        total = 0.0
        for last, x, y in micro_batches(accumulate, 16):
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(x), y) / accumulate
                loss.backward()
            total += loss.item()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        optimizer.zero_grad()
        reports.append((round(total, 4), round(norm.item(), 3)))
    dist.destroy_process_group()
    return reports


if __name__ == "__main__":
    print(main())
# /// correct reptile-on-sinusoids
# families = ["graph-break", "optimizer", "higher-order"]
# resembles = "a meta-update that goes through state dicts and no_grad, without any gradient of the meta-parameters"
# ///
import copy

import torch
from torch import nn


class Sinusoids:
    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)

    def uniform(self, *shape):
        return torch.rand(*shape, generator=self.generator)

    def task(self):
        amplitude, phase = 0.5 + 2 * self.uniform(1), 3.14 * self.uniform(1)
        x = 8 * self.uniform(24, 1) - 4
        return x, amplitude * torch.sin(x + phase)


def adapt(model, x, y, steps=3, lr=0.02):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for rows in torch.randperm(len(x)).chunk(steps):
        inner.zero_grad()
        (learner(x[rows]) - y[rows]).square().mean().backward()
        inner.step()
    return learner


@torch.no_grad()
def interpolate(model, learners, rate):
    for name, weight in model.named_parameters():
        mean = torch.stack([learner.get_parameter(name) for learner in learners]).mean(0)
        weight.lerp_(mean, rate)


torch.manual_seed(101)
tasks = Sinusoids(seed=101)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
rounds = 5
for number in range(rounds):
    learners = [adapt(model, *tasks.task()) for _ in range(2)]
    interpolate(model, learners, rate=0.5 * (1 - number / rounds))
x, y = tasks.task()
before, after = ((m(x) - y).square().mean().item() for m in (model, adapt(model, x, y)))
print(f"before {before:.3f} after {after:.3f}")
# /// correct road-segmentation
# families = ["loss", "numerics"]
# resembles = "softmax-before-cross-entropy"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class DilatedNet(nn.Module):
    def __init__(self, classes, width=10):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.context = nn.ModuleList(nn.Conv2d(width, width, 3, padding=d, dilation=d) for d in (1, 2, 4))
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        h = F.relu(self.stem(x))
        for conv in self.context:
            h = h + F.relu(conv(h))
        return F.log_softmax(self.out(h), dim=1)


def soft_dice(probs, target, valid, eps=1.0):
    one_hot = F.one_hot(target, probs.shape[1]).permute(0, 3, 1, 2).float() * valid
    probs = probs * valid
    overlap = (probs * one_hot).sum((0, 2, 3))
    return 1 - ((2 * overlap + eps) / (probs.sum((0, 2, 3)) + one_hot.sum((0, 2, 3)) + eps)).mean()


def segmentation_loss(log_probs, target, ignore=-1):
    valid = (target != ignore).unsqueeze(1)
    nll = F.nll_loss(log_probs, target, ignore_index=ignore)
    return nll + 0.5 * soft_dice(log_probs.exp(), target.clamp(min=0), valid)


def roads(count, size=14):
    target = torch.zeros(count, size, size, dtype=torch.long)
    for t in target:
        t[:, int(torch.randint(2, size - 3, ()))] = 1
        t[int(torch.randint(2, size - 3, ()))] = 2
    images = (target > 0).float() + 0.3 * torch.randn(count, size, size)
    target[torch.rand(count, size, size) < 0.1] = -1
    return images.unsqueeze(1), target


torch.manual_seed(12)
net = DilatedNet(classes=3)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for step in range(20):
    images, target = roads(10)
    loss = segmentation_loss(net(images), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    hit = (net(images).argmax(1) == target)[target >= 0].float().mean()
print(f"loss {loss.item():.3f} pixel accuracy {hit:.3f}")
# /// correct score-function-with-baseline
# families = ["graph-break"]
# resembles = "a detached reward; a sample without a gradient"
# ///
import torch
from torch import nn
from torch.distributions import Bernoulli


class SensorChoice(nn.Module):
    """Which of the sensors to switch on: a product of Bernoullis."""

    def __init__(self, sensors):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(sensors))

    def draw(self, count):
        q = Bernoulli(logits=self.logits)
        chosen = q.sample((count,))
        return chosen, q.log_prob(chosen).sum(-1), q.entropy().sum()


def information(chosen, rows, prior=1.0):
    precision = prior * torch.eye(rows.shape[1]) + torch.einsum("ks,si,sj->kij", chosen, rows, rows)
    return torch.logdet(precision)


torch.manual_seed(9)
rows = torch.randn(14, 4)
choice = SensorChoice(14)
scale = nn.Parameter(torch.tensor(1.0))
optimizer = torch.optim.Adam([
    {"params": choice.parameters(), "lr": 0.1},
    {"params": [scale], "lr": 0.02},
])
baseline = None
for step in range(25):
    chosen, log_prob, entropy = choice.draw(32)
    utility = information(chosen, scale * rows) - 0.4 * chosen.sum(-1) - 0.5 * scale.square()
    reward = utility.detach()
    baseline = reward.mean() if baseline is None else 0.8 * baseline + 0.2 * reward.mean()
    surrogate = ((reward - baseline) * log_prob).mean() + utility.mean() + 0.01 * entropy
    optimizer.zero_grad()
    (-surrogate).backward()
    optimizer.step()
print(choice.logits.sigmoid().tolist(), scale.item(), baseline.item())
# /// correct shards-in-threads
# families = ["accumulation", "optimizer"]
# resembles = "gradients by autograd.grad in threads and no zero_grad"
# ///
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


class Pool:
    def __init__(self, model, workers):
        self.model = model
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.executor = ThreadPoolExecutor(workers)

    def shard(self, x, y, total):
        loss = nn.functional.mse_loss(self.model(x), y, reduction="sum") / total
        return loss.item(), torch.autograd.grad(loss, self.parameters)

    def gradients(self, shards):
        total = sum(y.numel() for _, y in shards)
        jobs = [self.executor.submit(self.shard, x, y, total) for x, y in shards]
        results = [job.result() for job in jobs]
        for p, *parts in zip(self.parameters, *(grads for _, grads in results)):
            p.grad = torch.stack(parts).sum(0)
        return sum(value for value, _ in results)

    def validate(self, x, y):
        def work():
            with torch.inference_mode():
                return nn.functional.mse_loss(self.model(x), y).item()
        return self.executor.submit(work)

    def close(self):
        self.executor.shutdown()


torch.manual_seed(35)
model = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
pool = Pool(model, 3)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
mixing = torch.randn(5, 2)
held = torch.randn(40, 5)
for step in range(12):
    x = torch.randn(90, 5)
    y = torch.sin(x @ mixing)
    value = pool.gradients(list(zip(x.split(30), y.split(30))))
    optimizer.step()
    checked = pool.validate(held, torch.sin(held @ mixing)).result()
    print(step, round(value, 4), round(checked, 4))
pool.close()
# /// correct sharpness-aware
# families = ["in-place", "optimizer", "accumulation"]
# resembles = "parameters-modified-between-forward-and-backward"
# ///
import torch
import torch.nn as nn


class SAM:
    def __init__(self, parameters, base, rho=0.05, **settings):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **settings)
        self.rho = rho

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm()
        self.moves = [self.rho * p.grad / (norm + 1e-12) for p in self.parameters]
        for p, move in zip(self.parameters, self.moves):
            p.add_(move)

    @torch.no_grad()
    def descend(self):
        for p, move in zip(self.parameters, self.moves):
            p.sub_(move)
        self.base.step()

    def zero_grad(self):
        self.base.zero_grad()


def build(depth=3, width=32):
    layers = [nn.Linear(16, width)]
    for _ in range(depth - 1):
        layers += [nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width)]
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(width, 3))


def sharpness_aware_step(model, optimizer, criterion, x, y):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.climb()
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.descend()
    return loss.item()


torch.manual_seed(7)
model = build()
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
x = torch.randn(120, 16)
y = x[:, :3].argmax(1)
for epoch in range(4):
    values = [sharpness_aware_step(model, optimizer, criterion, x[r], y[r]) for r in torch.randperm(120).split(24)]
    print(f"epoch {epoch} {sum(values) / len(values):.4f}")
# /// correct stacked-shots
# families = ["accumulation", "graph-break"]
# resembles = "several backward calls before a step; edits of .grad"
# ///
import torch


def ricker(steps, dt, frequency):
    t = torch.arange(steps) * dt - 1.2 / frequency
    a = (torch.pi * frequency * t) ** 2
    return (1 - 2 * a) * torch.exp(-a)


def shoot(speed, source, receivers, wavelet, dt, h):
    before = now = torch.zeros_like(speed)
    ratio = (speed * dt / h) ** 2
    delta = torch.zeros_like(speed)
    delta[source] = dt ** 2
    seen = []
    for amplitude in wavelet:
        curvature = now.roll(1) - 2 * now + now.roll(-1)
        before, now = now, 2 * now - before + ratio * curvature + delta * amplitude
        seen.append(now[receivers])
    return torch.stack(seen)


torch.manual_seed(18)
cells, dt, h = 60, 0.004, 10.0
wavelet = ricker(110, dt, 12.0)
receivers = torch.arange(5, cells - 5, 5)
true_speed = torch.full((cells,), 1500.0)
true_speed[28:36] += 200.0
sources = [8, 30, 52]
with torch.no_grad():
    recorded = {s: shoot(true_speed, s, receivers, wavelet, dt, h) for s in sources}

slowdown = torch.zeros(cells, requires_grad=True)
optimizer = torch.optim.Adam([slowdown], lr=0.1)
for iteration in range(5):
    optimizer.zero_grad()
    total = 0.0
    for s in sources:
        predicted = shoot(1500.0 + 100.0 * slowdown, s, receivers, wavelet, dt, h)
        misfit = (predicted - recorded[s]).square().sum() / recorded[s].square().sum() / len(sources)
        misfit.backward()
        total += misfit.item()
    slowdown.grad[:3] = 0
    slowdown.grad[-3:] = 0
    optimizer.step()
    print(iteration, round(total, 5))
# /// correct stateful-meter-reading
# families = ["retention", "graph-break"]
# resembles = "hidden-state-not-detached"
# ///
import torch
from torch import nn


class Stateful(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.read = nn.Linear(hidden, 1)
        self.state = None

    def reset(self):
        self.state = None

    def forward(self, window):
        out, state = self.lstm(window, self.state)
        self.state = tuple(s.detach() for s in state)
        return self.read(out)


class RunningMean:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def add(self, value, count):
        self.total += value.detach() * count
        self.count += count

    @property
    def value(self):
        return (self.total / self.count).item()


def meters(count=8, length=64):
    t = torch.arange(length + 1) * 0.3
    series = torch.sin(t + 6.28 * torch.rand(count, 1)) + 0.05 * torch.randn(count, length + 1)
    return series.unsqueeze(-1)


torch.manual_seed(2)
model = Stateful()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
series = meters()
for epoch in range(4):
    model.reset()
    mean = RunningMean()
    for inputs, targets in zip(series[:, :-1].split(16, 1), series[:, 1:].split(16, 1)):
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean.add(loss, targets.numel())
    print(f"epoch {epoch} mse {mean.value:.4f}")
# /// correct temperature-of-entropy
# families = ["leaf", "optimizer", "graph-break", "flags"]
# resembles = "a scalar parameter outside of any module, detached twice, and targets that no optimizer holds"
# ///
import copy

import torch
from torch import nn
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform


class Policy(nn.Module):
    def __init__(self, observation, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(observation, 32), nn.SiLU(), nn.Linear(32, 2 * actions))

    def forward(self, observation):
        mean, log_std = self.net(observation).chunk(2, dim=-1)
        base = Independent(Normal(mean, log_std.clamp(-3, 0.5).exp()), 1)
        return TransformedDistribution(base, TanhTransform(cache_size=1))


class Critics(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.each = nn.ModuleList(nn.Sequential(nn.Linear(inputs, 32), nn.SiLU(), nn.Linear(32, 1)) for _ in range(2))

    def forward(self, observation, action):
        x = torch.cat([observation, action], -1)
        return torch.cat([critic(x) for critic in self.each], -1)


def step_world(observation, action):
    following = 0.9 * observation + 0.3 * torch.cat([action, -action], 1) + 0.05 * torch.randn_like(observation)
    return following, -following.square().sum(1)


torch.manual_seed(151)
policy, critics = Policy(4, 2), Critics(6)
target = copy.deepcopy(critics).eval().requires_grad_(False)
log_alpha = torch.tensor(-1.0, requires_grad=True)
target_entropy = -2.0
policy_opt = torch.optim.Adam(policy.parameters(), lr=2e-3)
critics_opt = torch.optim.Adam(critics.parameters(), lr=2e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-2)
observation = torch.randn(64, 4)
for step in range(8):
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        action = policy(observation).sample()
        following, reward = step_world(observation, action)
        dist = policy(following)
        then = dist.sample()
        goal = reward + 0.95 * (target(following, then).min(1).values - alpha * dist.log_prob(then))
    critic_loss = (critics(observation, action) - goal.unsqueeze(1)).square().sum(1).mean()
    critics_opt.zero_grad()
    critic_loss.backward()
    critics_opt.step()

    dist = policy(observation)
    chosen = dist.rsample()
    log_prob = dist.log_prob(chosen)
    policy_loss = (alpha * log_prob - critics(observation, chosen).min(1).values).mean()
    policy_opt.zero_grad()
    policy_loss.backward()
    policy_opt.step()

    alpha_loss = -(log_alpha * (log_prob.detach() + target_entropy)).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), critics.parameters()):
            slow.lerp_(fast, 0.05)
    observation = following
print(f"critic {critic_loss.item():.3f} policy {policy_loss.item():.3f} alpha {log_alpha.exp().item():.3f}")
# /// correct thawing-encoder
# families = ["optimizer", "flags"]
# resembles = "parameter-not-in-optimizer"
# ///
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width, bottleneck=4):
        super().__init__()
        self.down, self.up = nn.Linear(width, bottleneck), nn.Linear(bottleneck, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.adapter = Adapter(width)

    def forward(self, x):
        return self.adapter(x + self.mix(x))


class Encoder(nn.Module):
    def __init__(self, width=16, depth=3, classes=4):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Thaw:
    def __init__(self, model, optimizer, schedule, lr):
        self.model, self.optimizer, self.schedule, self.lr = model, optimizer, schedule, lr

    def __call__(self, epoch):
        for index in self.schedule.get(epoch, ()):
            parameters = list(self.model.layers[index].mix.parameters())
            for p in parameters:
                p.requires_grad_(True)
            self.optimizer.add_param_group({"params": parameters, "lr": self.lr})


torch.manual_seed(9)
model = Encoder()
for layer in model.layers:
    layer.mix.requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-3)
thaw = Thaw(model, optimizer, {2: [2], 3: [1, 0]}, lr=1e-3)
x = torch.randn(96, 16)
y = x[:, :4].argmax(1)
for epoch in range(5):
    thaw(epoch)
    for rows in torch.randperm(96).split(24):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.3f} groups {len(optimizer.param_groups)}")
# /// correct token-weighted-windows
# families = ["accumulation", "loss"]
# resembles = "missing-zero-grad"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class LMConfig:
    vocab: int = 40
    width: int = 24
    context: int = 12
    micro_batch: int = 6
    accumulate: int = 3
    lr: float = 4e-3
    pad: int = 0


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.width, padding_idx=cfg.pad)
        self.places = nn.Embedding(cfg.context, cfg.width)
        self.layer = nn.TransformerEncoderLayer(cfg.width, 3, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.norm = nn.LayerNorm(cfg.width)

    def forward(self, ids):
        length = ids.shape[1]
        causal = nn.Transformer.generate_square_subsequent_mask(length)
        h = self.tokens(ids) + self.places(torch.arange(length))
        return self.norm(self.layer(h, src_mask=causal, is_causal=True)) @ self.tokens.weight.T / h.shape[-1] ** 0.5


def targets_of(ids, pad):
    return ids[:, 1:].masked_fill(ids[:, 1:] == pad, -100)


def corpus(cfg, count):
    ids = 1 + (torch.randint(1, 39, (count, 1)) + 3 * torch.arange(cfg.context)) % (cfg.vocab - 1)
    return ids.masked_fill(torch.arange(cfg.context) >= torch.randint(4, cfg.context + 1, (count, 1)), cfg.pad)


def windows(batches, size):
    for start in range(0, len(batches), size):
        yield batches[start:start + size]


torch.manual_seed(1)
cfg = LMConfig()
model = TinyLM(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
batches = corpus(cfg, 60).split(cfg.micro_batch)
for epoch in range(3):
    for window in windows(batches, cfg.accumulate):
        tokens = sum(int((targets_of(ids, cfg.pad) != -100).sum()) for ids in window)
        total = 0.0
        for ids in window:
            logits = model(ids[:, :-1])
            loss = F.cross_entropy(logits.transpose(1, 2), targets_of(ids, cfg.pad), reduction="sum") / tokens
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    print(f"epoch {epoch} loss {total:.3f}")
# /// correct two-domains-one-encoder
# families = ["function", "scale"]
# resembles = "a custom Function whose backward changes the sign and returns None"
# ///
import math

import torch
from torch import nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DomainAdversarial(nn.Module):
    def __init__(self, inputs=6, width=20, classes=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, width), nn.ReLU())
        self.label = nn.Linear(width, classes)
        self.domain = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, strength):
        h = self.encoder(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


def domain_batch(shift, count=48):
    labels = torch.randint(0, 2, (count,))
    x = torch.randn(count, 6)
    x[:, 0] += 3.0 * labels - 1.5
    x[:, 1] += shift
    return x, labels


def ramp(progress):
    return 2 / (1 + math.exp(-10 * progress)) - 1


torch.manual_seed(131)
model = DomainAdversarial()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
steps = 20
for step in range(steps):
    source, labels = domain_batch(-1.0)
    target, _ = domain_batch(+1.0)
    strength = ramp(step / steps)
    class_logits, source_domain = model(source, strength)
    _, target_domain = model(target, strength)
    domain_logits = torch.cat([source_domain, target_domain])
    domain_labels = torch.cat([torch.zeros(len(source)), torch.ones(len(target))])
    label_loss = F.cross_entropy(class_logits, labels)
    domain_loss = F.binary_cross_entropy_with_logits(domain_logits, domain_labels)
    optimizer.zero_grad()
    (label_loss + domain_loss).backward()
    optimizer.step()
print(f"label {label_loss.item():.3f} domain {domain_loss.item():.3f} strength {strength:.2f}")
# /// correct two-tower-retrieval
# families = ["optimizer", "accumulation", "loss"]
# resembles = "zero-grad-missing-for-second-optimizer"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tower(nn.Module):
    def __init__(self, rows, width, out):
        super().__init__()
        self.table = nn.Embedding(rows, width, sparse=True)
        self.project = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, out))

    def forward(self, ids):
        return F.normalize(self.project(self.table(ids)), dim=-1)


class TwoTower(nn.Module):
    def __init__(self, users, items, width=12, out=8):
        super().__init__()
        self.user, self.item = Tower(users, width, out), Tower(items, width, out)
        self.log_temperature = nn.Parameter(torch.tensor(-1.5))

    def forward(self, users, items, log_q):
        scores = self.user(users) @ self.item(items).T * torch.exp(-self.log_temperature)
        accidental = (items[:, None] == items[None]) & ~torch.eye(len(items), dtype=torch.bool)
        return (scores - log_q[items]).masked_fill(accidental, -1e4)


class Optimizers:
    def __init__(self, model):
        tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
        known = {id(p) for p in tables}
        dense = [p for p in model.parameters() if id(p) not in known]
        self.all = [torch.optim.SparseAdam(tables, lr=2e-2), torch.optim.Adam(dense, lr=5e-3)]

    def zero_grad(self):
        for optimizer in self.all:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.all:
            optimizer.step()


torch.manual_seed(14)
popularity = torch.softmax(-torch.arange(40) / 15.0, 0)
model = TwoTower(users=50, items=40)
optimizers = Optimizers(model)
losses = []
for step in range(20):
    items = torch.multinomial(popularity, 32, replacement=True)
    users = (items + torch.randint(0, 3, (32,))) % 50
    loss = F.cross_entropy(model(users, items, popularity.log()), torch.arange(32))
    optimizers.zero_grad()
    loss.backward()
    optimizers.step()
    losses.append(loss.item())
print(f"{losses[0]:.3f} {losses[-1]:.3f}")
# /// correct unrolled-world-model
# families = ["hook", "scale", "retention"]
# resembles = "a hook that halves gradients registered in each step of an unroll"
# ///
import torch
from torch import nn
import torch.nn.functional as F


def halve(grad):
    return grad * 0.5


class Dynamics(nn.Module):
    def __init__(self, width=24, actions=3):
        super().__init__()
        self.actions = actions
        self.mix = nn.Linear(width + actions, width)
        self.norm = nn.LayerNorm(width)
        self.reward = nn.Linear(width, 1)

    def forward(self, hidden, action):
        one_hot = F.one_hot(action, self.actions).float()
        hidden = self.norm(hidden + F.relu(self.mix(torch.cat([hidden, one_hot], 1))))
        return hidden, self.reward(hidden).squeeze(1)


class WorldModel(nn.Module):
    def __init__(self, observation=4, width=24):
        super().__init__()
        self.represent = nn.Sequential(nn.Linear(observation, width), nn.LayerNorm(width))
        self.dynamics = Dynamics(width)
        self.value = nn.Linear(width, 1)

    def unroll(self, observation, actions):
        hidden = self.represent(observation)
        rewards = []
        for action in actions.unbind(1):
            if hidden.requires_grad:
                hidden.register_hook(halve)
            hidden, reward = self.dynamics(hidden, action)
            if reward.requires_grad:
                reward.register_hook(lambda grad: grad / actions.shape[1])
            rewards.append(reward)
        return torch.stack(rewards, 1), self.value(hidden).squeeze(1)


def simulate(count, length=5):
    state = torch.randn(count, 4)
    actions = torch.randint(0, 3, (count, length))
    rewards, now = [], state
    for action in actions.unbind(1):
        now = 0.9 * now.roll(1, 1) + 0.1 * (action.float().unsqueeze(1) - 1)
        rewards.append(now.mean(1))
    return state, actions, torch.stack(rewards, 1), now.square().mean(1)


torch.manual_seed(137)
model = WorldModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(15):
    observation, actions, rewards, value = simulate(64)
    predicted, final = model.unroll(observation, actions)
    loss = (predicted - rewards).square().sum(1).mean() + (final - value).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    check = model.unroll(*simulate(16)[:2])[0].std().item()
print(f"{loss.item():.4f} {check:.4f}")
