# /// correct amp-spectra
# families = ["accumulation", "optimizer"]
# resembles = "a last window that is short; a schedule for each update"
# ///
import torch
import torch.nn.functional as F
from torch import nn

ACCUMULATE = 3
EPOCHS = 4


def spectra(n, classes=4, length=48):
    y = torch.randint(0, classes, (n,))
    peaks = 6 + 11 * y
    axis = torch.arange(length)
    x = torch.exp(-0.1 * (axis[None] - peaks[:, None]).float().square())
    return (x + 0.2 * torch.randn(n, length)).unsqueeze(1), y


def windows(batches, size):
    held = []
    for batch in batches:
        held.append(batch)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


torch.manual_seed(31)
x, y = spectra(200)
net = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.GroupNorm(2, 8), nn.ReLU(), nn.AdaptiveAvgPool1d(12), nn.Flatten(), nn.Linear(96, 4))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
updates = EPOCHS * 5
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=updates)

optimizer.zero_grad(set_to_none=True)
for epoch in range(EPOCHS):
    total = 0.0
    for window in windows(torch.randperm(len(x)).split(14), ACCUMULATE):
        rows_in_window = sum(len(rows) for rows in window)
        for rows in window:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = net(x[rows])
                loss = F.cross_entropy(logits, y[rows], reduction="sum") / rows_in_window
            scaler.scale(loss).backward()
            total += loss.item() * rows_in_window
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 2.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
    print(f"epoch {epoch} loss {total / len(x):.4f} scale {scaler.get_scale():.0f} lr {schedule.get_last_lr()[0]:.5f}")
# /// correct beam-pinn
# families = ["higher-order"]
# resembles = "nested create_graph; a closure of LBFGS"
# ///
import math

import torch
from torch import nn


class Deflection(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return x * (1 - x) * self.net(x)


def derivative(u, x):
    return torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]


def energy_residual(model, x, load):
    u = model(x)
    u2 = derivative(derivative(u, x), x)
    return u2 + load(x.detach())


torch.manual_seed(13)
model = Deflection()
points = torch.linspace(0, 1, 33).unsqueeze(-1).requires_grad_()
load = lambda x: math.pi ** 2 * torch.sin(math.pi * x)
lbfgs = torch.optim.LBFGS(model.parameters(), lr=1.0, max_iter=15, history_size=20, line_search_fn="strong_wolfe")
trace = []


def closure():
    lbfgs.zero_grad()
    loss = energy_residual(model, points, load).square().mean()
    loss.backward()
    trace.append(loss.item())
    return loss


for sweep in range(4):
    lbfgs.step(closure)
    print(sweep, f"{trace[-1]:.3e}")

with torch.no_grad():
    exact = torch.sin(math.pi * points)
    print("max error", (model(points) - exact).abs().max().item())
# /// correct cox-survival
# families = ["optimizer"]
# resembles = "a proximal step on weights behind the step"
# ///
import torch
from torch import nn


class PartialLikelihood(nn.Module):
    def forward(self, risk, time, event):
        order = time.argsort(descending=True)
        risk, event = risk[order], event[order]
        at_risk = torch.logcumsumexp(risk, 0)
        return -((risk - at_risk) * event).sum() / event.sum().clamp(min=1)


@torch.no_grad()
def concordance(risk, time, event):
    comparable = (time[:, None] < time[None]) & event[:, None].bool()
    return ((risk[:, None] > risk[None]) & comparable).sum().item() / comparable.sum().item()


def trial(n, genes=12):
    x = torch.randn(n, genes)
    hazard = torch.exp(0.9 * x[:, 0] - 0.7 * x[:, 1])
    death = torch.distributions.Exponential(hazard).sample()
    censoring = torch.distributions.Exponential(torch.full((n,), 0.4)).sample()
    return x, torch.minimum(death, censoring), (death <= censoring).float()


def lasso(layer, step, strength):
    with torch.no_grad():
        layer.weight.copy_(layer.weight.sign() * (layer.weight.abs() - step * strength).clamp(min=0))


torch.manual_seed(70)
x, time, event = trial(300)
train, test = slice(0, 220), slice(220, 300)
network = nn.Sequential(nn.Linear(12, 16, bias=False), nn.Tanh(), nn.Linear(16, 1, bias=False))
criterion = PartialLikelihood()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.8)
partial = []
for epoch in range(60):
    network.zero_grad()
    loss = criterion(network(x[train]).squeeze(-1), time[train], event[train])
    loss.backward()
    optimizer.step()
    lasso(network[0], step=0.1, strength=0.02)
    partial.append(loss.item())
with torch.no_grad():
    risk = network(x[test]).squeeze(-1)
print(f"{partial[0]:.3f} -> {partial[-1]:.3f}, concordance {concordance(risk, time[test], event[test]):.3f}")
# /// correct domain-adversarial
# families = ["function"]
# resembles = "a negated gradient"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self, features, hidden=32, classes=3):
        super().__init__()
        self.extract = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.label = nn.Linear(hidden, classes)
        self.domain = nn.Sequential(nn.Linear(hidden, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, strength):
        h = self.extract(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(-1)


def scanner(n, centres, shift):
    y = torch.randint(0, len(centres), (n,))
    return centres[y] + shift + 0.6 * torch.randn(n, centres.shape[1]), y


torch.manual_seed(7)
centres = 2 * torch.randn(3, 8)
source_x, source_y = scanner(256, centres, 0.0)
target_x, target_y = scanner(256, centres, torch.linspace(-0.5, 0.5, 8))
model = DANN(8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9)
steps = 80
for step in range(steps):
    strength = 2 / (1 + torch.exp(torch.tensor(-10.0 * step / steps)).item()) - 1
    s, t = torch.randint(0, 256, (48,)), torch.randint(0, 256, (48,))
    logits, origin = model(torch.cat([source_x[s], target_x[t]]), strength)
    which = torch.cat([torch.zeros(48), torch.ones(48)])
    task = F.cross_entropy(logits[:48], source_y[s])
    confusion = F.binary_cross_entropy_with_logits(origin, which)
    optimizer.zero_grad()
    (task + 0.3 * confusion).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    accuracy = (model(target_x, 0.0)[0].argmax(1) == target_y).float().mean().item()
print("task", task.item(), "confusion", confusion.item(), "target accuracy", accuracy)
# /// correct dreamer-heads
# families = ["retention", "loss"]
# resembles = "retain_graph; two losses that meet in one model"
# ///
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence


class WorldModel(nn.Module):
    def __init__(self, obs, act, latent=6, width=32):
        super().__init__()
        self.cell = nn.GRUCell(latent + act, width)
        self.prior = nn.Linear(width, 2 * latent)
        self.post = nn.Linear(width + obs, 2 * latent)
        self.decode = nn.Linear(width + latent, obs)
        self.width, self.latent = width, latent

    @staticmethod
    def normal(stats):
        mean, raw = stats.chunk(2, -1)
        return Normal(mean, nn.functional.softplus(raw) + 0.1)

    def observe(self, obs, act):
        h, z = torch.zeros(len(obs), self.width), torch.zeros(len(obs), self.latent)
        features, kl = [], 0.0
        for t in range(obs.shape[1]):
            h = self.cell(torch.cat([z, act[:, t]], -1), h)
            prior, post = self.normal(self.prior(h)), self.normal(self.post(torch.cat([h, obs[:, t]], -1)))
            z = post.rsample()
            frozen = Normal(post.mean.detach(), post.stddev.detach())
            kl = kl + 0.8 * kl_divergence(frozen, prior).sum(-1) + 0.2 * kl_divergence(post, Normal(prior.mean.detach(), prior.stddev.detach())).sum(-1)
            features.append(torch.cat([h, z], -1))
        return torch.stack(features, 1), kl.mean() / obs.shape[1]


def episodes(n, length=8):
    act = torch.rand(n, length, 2) * 2 - 1
    path = 0.4 * act.cumsum(1)
    obs = torch.cat([path, path.sin()], -1) + 0.02 * torch.randn(n, length, 4)
    return obs, act, -path.square().sum(-1, keepdim=True)


torch.manual_seed(95)
obs, act, rew = episodes(200)
world, reward_head = WorldModel(4, 2), nn.Sequential(nn.Linear(38, 32), nn.ELU(), nn.Linear(32, 1))
world_opt = torch.optim.Adam(world.parameters(), lr=4e-3)
reward_opt = torch.optim.Adam(reward_head.parameters(), lr=1e-2)
log = []
for it in range(45):
    rows = torch.randint(200, (32,))
    features, kl = world.observe(obs[rows], act[rows])
    model_loss = (world.decode(features) - obs[rows]).square().sum(-1).mean() + 0.05 * kl
    reward_loss = (reward_head(features) - rew[rows]).square().mean()
    world_opt.zero_grad()
    reward_opt.zero_grad()
    model_loss.backward(retain_graph=True)
    reward_loss.backward()
    nn.utils.clip_grad_norm_(world.parameters(), 10.0)
    world_opt.step()
    reward_opt.step()
    log.append((model_loss.item(), reward_loss.item()))
print(log[0], log[-1])
# /// correct evolution-swimmer
# families = ["graph-break", "leaf"]
# resembles = "no backward at all; .grad assigned by hand"
# ///
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


@torch.no_grad()
def fitness(policy, starts, horizon=20):
    heading, goal = starts.unbind(1)
    score = torch.zeros(len(starts))
    for _ in range(horizon):
        gap = goal - heading
        stroke = policy(torch.stack([gap.sin(), gap.cos()], 1)).tanh().squeeze(1)
        heading = heading + 0.3 * stroke
        score += gap.cos() - 0.05 * stroke.square()
    return score.mean().item() / horizon


def ranks(values):
    order = torch.tensor(values).argsort().argsort().float()
    return order / (len(values) - 1) - 0.5


class EvolutionStrategy:
    def __init__(self, policy, population=20, sigma=0.1, lr=0.05):
        self.policy, self.population, self.sigma = policy, population, sigma
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=lr)

    def generation(self, starts):
        centre = parameters_to_vector(self.policy.parameters()).detach().clone()
        noise = torch.randn(self.population // 2, len(centre))
        noise = torch.cat([noise, -noise])
        scores = []
        for eps in noise:
            vector_to_parameters(centre + self.sigma * eps, self.policy.parameters())
            scores.append(fitness(self.policy, starts))
        vector_to_parameters(centre, self.policy.parameters())
        ascent = (ranks(scores)[:, None] * noise).mean(0) / self.sigma
        offset = 0
        for p in self.policy.parameters():
            p.grad = -ascent[offset : offset + p.numel()].view_as(p)
            offset += p.numel()
        self.optimizer.step()
        return sum(scores) / len(scores)


torch.manual_seed(55)
policy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
es = EvolutionStrategy(policy)
curve = []
for _ in range(25):
    starts = (torch.rand(32, 2) * 2 - 1) * 3.14
    curve.append(es.generation(starts))
print("fitness", curve[0], "->", curve[-1])
# /// correct few-shot-languages
# families = ["higher-order", "leaf"]
# resembles = "first-order steps; .grad written by hand"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class PhonemeProbe(nn.Module):
    def __init__(self, bins=10, width=24, phones=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(bins, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, phones))

    def forward(self, x):
        return self.net(x)


class Language:
    shared = torch.randn(6, 10, generator=torch.Generator().manual_seed(1))

    def __init__(self, generator):
        self.offset = 0.6 * torch.randn(10, generator=generator)
        self.generator = generator

    def shots(self, count):
        labels = torch.randint(0, 6, (count,), generator=self.generator)
        noise = 0.4 * torch.randn(count, 10, generator=self.generator)
        return self.shared[labels] + self.offset + noise, labels


def adapt(model, language, steps, lr):
    learner = copy.deepcopy(model)
    for _ in range(steps):
        x, y = language.shots(12)
        gradients = torch.autograd.grad(F.cross_entropy(learner(x), y), list(learner.parameters()))
        with torch.no_grad():
            for p, g in zip(learner.parameters(), gradients):
                p.sub_(lr * g)
    return learner


def outer_step(model, optimizer, languages, inner_steps=3, inner_lr=0.2):
    optimizer.zero_grad()
    total = 0.0
    for language in languages:
        learner = adapt(model, language, inner_steps, inner_lr)
        x, y = language.shots(24)
        loss = F.cross_entropy(learner(x), y)
        gradients = torch.autograd.grad(loss, list(learner.parameters()))
        for p, g in zip(model.parameters(), gradients):
            p.grad = g / len(languages) if p.grad is None else p.grad + g / len(languages)
        total += loss.item() / len(languages)
    optimizer.step()
    return total


torch.manual_seed(60)
generator = torch.Generator().manual_seed(61)
model = PhonemeProbe()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for iteration in range(40):
    languages = [Language(generator) for _ in range(4)]
    loss = outer_step(model, optimizer, languages)
    if iteration % 10 == 9:
        print(iteration, round(loss, 4))
# /// correct fomaml-reach
# families = ["higher-order", "leaf"]
# resembles = "first-order steps; .grad written by hand"
# ///
from dataclasses import dataclass

import torch
from torch import nn
from torch.func import functional_call


@dataclass(frozen=True)
class Meta:
    iterations: int = 80
    tasks: int = 4
    shots: int = 16
    inner_steps: int = 2
    inner_lr: float = 0.1
    outer_lr: float = 5e-3


class ReachTask:
    def __init__(self):
        angle = torch.rand(()) * 1.2 - 0.6
        self.rotation = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
        self.gain = 0.5 + torch.rand(())

    def batch(self, n):
        offset = torch.randn(n, 2)
        return offset, self.gain * torch.tanh(offset @ self.rotation.T)


def mse(policy, params, batch):
    offset, command = batch
    return nn.functional.mse_loss(functional_call(policy, params, (offset,)), command)


def adapted(policy, task, cfg):
    params = {k: p.detach().clone().requires_grad_() for k, p in policy.named_parameters()}
    for _ in range(cfg.inner_steps):
        grads = torch.autograd.grad(mse(policy, params, task.batch(cfg.shots)), list(params.values()))
        params = {k: (p - cfg.inner_lr * g).detach().requires_grad_() for (k, p), g in zip(params.items(), grads)}
    return params


def first_order_step(policy, optimizer, cfg):
    optimizer.zero_grad()
    total = 0.0
    for _ in range(cfg.tasks):
        task = ReachTask()
        params = adapted(policy, task, cfg)
        loss = mse(policy, params, task.batch(cfg.shots))
        total += loss.item()
        for p, g in zip(policy.parameters(), torch.autograd.grad(loss, list(params.values()))):
            p.grad = g / cfg.tasks if p.grad is None else p.grad + g / cfg.tasks
    optimizer.step()
    return total / cfg.tasks


torch.manual_seed(61)
cfg = Meta()
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=cfg.outer_lr)
curve = [first_order_step(policy, optimizer, cfg) for _ in range(cfg.iterations)]
print("query loss", sum(curve[:5]) / 5, "->", sum(curve[-5:]) / 5)
# /// correct frozen-encoder-probe
# families = ["flags", "mode"]
# resembles = "train() that keeps the encoder in eval; a hook that masks"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Probe(nn.Module):
    def __init__(self, encoder, width, classes):
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.adapter = nn.Linear(width, width)
        nn.init.zeros_(self.adapter.weight)
        nn.init.zeros_(self.adapter.bias)
        self.gain = nn.Parameter(torch.ones(()))
        self.classifier = nn.Linear(width, classes)
        blocks = torch.block_diag(*[torch.ones(4, 4)] * (width // 4))
        self.adapter.weight.register_hook(lambda grad: grad * blocks)
        self.train()

    def train(self, mode=True):
        super().train(mode)
        self.encoder.eval()
        return self

    def forward(self, x):
        h = self.encoder(x)
        return self.classifier(h + self.gain * self.adapter(h))


def make_encoder(features, width):
    return nn.Sequential(nn.Linear(features, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width))


def shifted(n, classes, means):
    y = torch.randint(0, classes, (n,))
    return means[y] + torch.randn(n, means.shape[1]), y


def denoising(encoder, x, width, steps=30):
    decoder = nn.Linear(width, x.shape[1])
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(steps):
        batch = x[torch.randint(0, len(x), (64,))]
        loss = F.mse_loss(decoder(encoder(batch + 0.3 * torch.randn_like(batch))), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    optimizer.zero_grad()
    return loss.item()


torch.manual_seed(97)
means = 1.5 * torch.randn(4, 16)
x, y = shifted(320, 4, means)
encoder = make_encoder(16, 24)
rebuilt = denoising(encoder, x, 24)
probe = Probe(encoder, 24, 4)
optimizer = torch.optim.AdamW((p for p in probe.parameters() if p.requires_grad), lr=0.01)
losses = []
for epoch in range(6):
    probe.train()
    for rows in torch.randperm(len(x)).split(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(probe(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"rebuilt {rebuilt:.3f}, probe {losses[0]:.3f} -> {losses[-1]:.3f}")
# /// correct frozen-stem-checkpoint
# families = ["flags", "graph-break"]
# resembles = "a reentrant checkpoint behind a frozen stem"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class ConformerLite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Conv1d(width, width, 5, padding=2, groups=4)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + 0.5 * self.feed(x)


class SpeechClassifier(nn.Module):
    def __init__(self, bins=16, width=32, depth=3, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(bins, width), nn.GELU())
        self.blocks = nn.ModuleList([ConformerLite(width) for _ in range(depth)])
        self.classes = nn.Linear(width, classes)
        for parameter in self.stem.parameters():
            parameter.requires_grad = False

    def forward(self, mel):
        with torch.no_grad():
            hidden = self.stem(mel)
        hidden.requires_grad_()
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True, preserve_rng_state=True)
        return self.classes(hidden.mean(1))


def clips(count):
    labels = torch.randint(0, 4, (count,))
    carrier = torch.linspace(0, 6, 20)[:, None] * (1 + labels[:, None, None])
    return carrier.sin() * torch.linspace(0.5, 1.5, 16) + 0.5 * torch.randn(count, 20, 16), labels


torch.manual_seed(36)
model = SpeechClassifier().train()
active = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(active, lr=2e-3)
for step in range(40):
    mel, labels = clips(16)
    loss = F.cross_entropy(model(mel), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, round(loss.item(), 4))
# /// correct gp-hyperparameters
# families = ["numerics", "in-place"]
# resembles = "a root of zero behind two where; diagonal().add_"
# ///
import math

import torch
from torch import nn


class ExactGP(nn.Module):
    def __init__(self, dims, jitter=1e-5):
        super().__init__()
        self.raw_lengths = nn.Parameter(torch.zeros(dims))
        self.raw_amplitude = nn.Parameter(torch.zeros(()))
        self.raw_noise = nn.Parameter(torch.tensor(-1.0))
        self.jitter = jitter

    def distance(self, a, b):
        lengths = nn.functional.softplus(self.raw_lengths)
        squared = (a[:, None] / lengths - b[None] / lengths).square().sum(-1)
        apart = squared > 0
        return torch.where(apart, torch.where(apart, squared, torch.ones_like(squared)).sqrt(), torch.zeros_like(squared))

    def kernel(self, a, b):
        r = math.sqrt(3) * self.distance(a, b)
        return self.raw_amplitude.exp() * (1 + r) * torch.exp(-r)

    def factor(self, x):
        k = self.kernel(x, x)
        k.diagonal().add_(self.raw_noise.exp() + self.jitter)
        return torch.linalg.cholesky(k)

    def neg_log_likelihood(self, x, y):
        chol = self.factor(x)
        alpha = torch.cholesky_solve(y[:, None], chol)
        return 0.5 * (y @ alpha).squeeze() + chol.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)

    @torch.no_grad()
    def predict(self, x, y, new):
        return self.kernel(new, x) @ torch.cholesky_solve(y[:, None], self.factor(x))


torch.manual_seed(52)
x = 4 * torch.rand(60, 2)
y = torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(60)
gp = ExactGP(dims=2)
optimizer = torch.optim.Adam(gp.parameters(), lr=0.08)
nll = []
for step in range(60):
    optimizer.zero_grad()
    loss = gp.neg_log_likelihood(x, y)
    loss.backward()
    optimizer.step()
    nll.append(loss.item())
new = 4 * torch.rand(20, 2)
error = (gp.predict(x, y, new).squeeze(-1) - torch.sin(2 * new[:, 0])).abs().mean()
print(f"{nll[0]:.3f} -> {nll[-1]:.3f}, test error {error:.3f}, lengths {gp.raw_lengths.tolist()}")
# /// correct implicit-ridge
# families = ["higher-order", "leaf"]
# resembles = "a solver under no_grad; .grad assigned, no clear"
# ///
import torch


def inner_objective(w, log_penalty, x, y):
    return 0.5 * (x @ w - y).square().mean() + 0.5 * (log_penalty.exp() * w.square()).sum()


def solve_inner(log_penalty, x, y):
    with torch.no_grad():
        gram = x.T @ x / len(x) + torch.diag(log_penalty.exp())
        w = torch.linalg.solve(gram, x.T @ y / len(x))
    return w.requires_grad_()


def conjugate_gradient(product, b, iterations=25, tolerance=1e-10):
    v = torch.zeros_like(b)
    r = b.clone()
    d = r.clone()
    rr = r @ r
    for _ in range(iterations):
        if rr < tolerance:
            break
        Ad = product(d)
        step = rr / (d @ Ad)
        v += step * d
        r -= step * Ad
        rr, previous = r @ r, rr
        d = r + rr / previous * d
    return v


def hypergradient(w, log_penalty, train, valid):
    outer = 0.5 * (valid[0] @ w - valid[1]).square().mean()
    (direction,) = torch.autograd.grad(outer, w)
    (slope,) = torch.autograd.grad(inner_objective(w, log_penalty, *train), w, create_graph=True)

    def hessian_product(v):
        return torch.autograd.grad(slope, w, grad_outputs=v, retain_graph=True)[0]

    v = conjugate_gradient(hessian_product, direction)
    (mixed,) = torch.autograd.grad(slope, log_penalty, grad_outputs=v)
    return -mixed, outer.item()


def identification_data(n, generator):
    x = torch.randn(n, 20, generator=generator)
    coefficients = torch.zeros(20)
    coefficients[:4] = torch.tensor([1.5, -2.0, 0.7, 1.0])
    return x, x @ coefficients + 0.5 * torch.randn(n, generator=generator)


g = torch.Generator().manual_seed(18)
train, valid = identification_data(30, g), identification_data(60, g)
log_penalty = torch.full((20,), -3.0, requires_grad=True)
optimizer = torch.optim.Adam([log_penalty], lr=0.1)
curve = []
for _ in range(60):
    w = solve_inner(log_penalty, *train)
    log_penalty.grad, outer = hypergradient(w, log_penalty, train, valid)
    optimizer.step()
    curve.append(outer)
print("validation", curve[0], "->", curve[-1])
print("penalty", log_penalty.detach().exp()[:6].tolist())
# /// correct int8-projection
# families = ["function", "graph-break"]
# resembles = "round and clamp behind a straight-through Function"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        levels = x / scale
        ctx.save_for_backward((levels >= low) & (levels <= high))
        return levels.round().clamp(low, high) * scale

    @staticmethod
    def backward(ctx, grad):
        inside, = ctx.saved_tensors
        return grad * inside, None, None, None


class QuantLinear(nn.Linear):
    def __init__(self, *args, bits=4, momentum=0.1, **kwargs):
        super().__init__(*args, **kwargs)
        self.high = 2 ** (bits - 1) - 1
        self.momentum = momentum
        self.observing = True
        self.register_buffer("input_range", torch.zeros(()))

    def observe(self, x):
        peak = x.detach().abs().amax()
        if self.input_range == 0:
            self.input_range.copy_(peak)
        else:
            self.input_range.lerp_(peak, self.momentum)

    def forward(self, x):
        if self.training and self.observing:
            self.observe(x)
        weight_scale = self.weight.detach().abs().amax(1, keepdim=True) / self.high
        x = Quantise.apply(x, self.input_range.clone() / self.high, -self.high, self.high)
        w = Quantise.apply(self.weight, weight_scale, -self.high, self.high)
        return F.linear(x, w, self.bias)


def freeze_observers(module):
    if isinstance(module, QuantLinear):
        module.observing = False


torch.manual_seed(44)
net = nn.Sequential(nn.Embedding(64, 24), nn.LayerNorm(24), QuantLinear(24, 48), nn.GELU(), QuantLinear(48, 8))
optimizer = torch.optim.AdamW(net.parameters(), lr=4e-3)
table = torch.randint(8, (64,))
for epoch in range(60):
    if epoch == 40:
        net.apply(freeze_observers)
    ids = torch.randint(64, (64,))
    loss = F.cross_entropy(net(ids), table[ids])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 20 == 19:
        print(epoch, loss.item(), net[2].input_range.item())

net.eval()
with torch.no_grad():
    accuracy = (net(torch.arange(64)).argmax(-1) == table).float().mean()
print("accuracy", accuracy.item())
# /// correct language-invariance
# families = ["function"]
# resembles = "a gradient reversal; two optimizers behind one backward"
# ///
import math

import torch
from torch import nn
from torch.autograd import Function


class Opposed(Function):
    @staticmethod
    def forward(ctx, features, strength):
        ctx.strength = strength
        return features.view_as(features)

    @staticmethod
    def backward(ctx, upstream):
        return -ctx.strength * upstream, None


class InvariantSpeechModel(nn.Module):
    def __init__(self, bins=20, width=24, words=5, languages=3):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(bins, width, 3, padding=1), nn.ReLU(), nn.Conv1d(width, width, 3, padding=1))
        self.word = nn.Linear(width, words)
        self.language = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, languages))

    def forward(self, mel, strength):
        features = self.encoder(mel).mean(-1)
        return self.word(features), self.language(Opposed.apply(features, strength))


def make_speech(count, bins=20, frames=16):
    word, language = torch.randint(5, (count,)), torch.randint(3, (count,))
    mel = 0.5 * torch.randn(count, bins, frames)
    mel[torch.arange(count), word * 3] += 2
    mel[torch.arange(count), 15 + language] += 2
    return mel, word, language


def ramp(step, steps):
    return 2 / (1 + math.exp(-10 * step / steps)) - 1


torch.manual_seed(7)
model = InvariantSpeechModel()
encoder_opt = torch.optim.Adam(model.encoder.parameters(), lr=2e-3)
head_opt = torch.optim.Adam([*model.word.parameters(), *model.language.parameters()], lr=4e-3)
criterion = nn.CrossEntropyLoss()
steps = 100
for step in range(steps):
    mel, word, language = make_speech(32)
    word_logits, language_logits = model(mel, 0.3 * ramp(step, steps))
    word_loss, language_loss = criterion(word_logits, word), criterion(language_logits, language)
    encoder_opt.zero_grad()
    head_opt.zero_grad()
    (word_loss + language_loss).backward()
    encoder_opt.step()
    head_opt.step()
    if step % 20 == 19:
        print(step, f"word {word_loss.item():.3f} language {language_loss.item():.3f}")
# /// correct layerwise-distillation
# families = ["hook", "mode"]
# resembles = "hooks that keep outputs; a teacher under no_grad"
# ///
from contextlib import ExitStack, contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F


def transformer(dim, layers, vocab=64, classes=4):
    layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.1, batch_first=True)
    return nn.ModuleDict({
        "embed": nn.Embedding(vocab, dim),
        "body": nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
        "head": nn.Linear(dim, classes),
    })


def classify(model, ids):
    return model["head"](model["body"](model["embed"](ids)).mean(1))


@contextmanager
def recorded(model, layers):
    seen = {}
    with ExitStack() as stack:
        for index in layers:
            handle = model["body"].layers[index].register_forward_hook(
                lambda module, args, output, index=index: seen.__setitem__(index, output)
            )
            stack.callback(handle.remove)
        yield seen


def distillation_losses(teacher, student, adapters, ids, temperature=3.0):
    with torch.no_grad(), recorded(teacher, [1, 3]) as wanted:
        soft_targets = (classify(teacher, ids) / temperature).log_softmax(-1)
    with recorded(student, [0, 1]) as given:
        logits = classify(student, ids)
    hidden = sum(F.mse_loss(adapter(given[s]), wanted[t]) for adapter, s, t in zip(adapters, (0, 1), (1, 3)))
    soft = F.kl_div((logits / temperature).log_softmax(-1), soft_targets, reduction="batchmean", log_target=True)
    return soft * temperature ** 2, hidden


def reviews(count):
    labels = torch.randint(0, 4, (count,))
    ids = torch.randint(0, 64, (count, 8))
    ids[:, ::2] = labels[:, None] * 16 + torch.randint(0, 16, (count, 4))
    return ids, labels


torch.manual_seed(52)
teacher, student = transformer(32, 4), transformer(16, 2)
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(30):
    ids, labels = reviews(32)
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(classify(teacher, ids), labels).backward()
    opt.step()
opt.zero_grad()
teacher.eval()
adapters = nn.ModuleList(nn.Linear(16, 32) for _ in range(2))
opt = torch.optim.Adam([*student.parameters(), *adapters.parameters()], lr=4e-3)
for step in range(40):
    ids, _ = reviews(24)
    soft, hidden = distillation_losses(teacher, student.train(), adapters, ids)
    loss = soft + 0.5 * hidden
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(step, round(soft.item(), 4), round(hidden.item(), 4))
# /// correct lora-merge
# families = ["scale", "in-place"]
# resembles = "a factor that begins at zero; weights merged through .data"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear = linear
        self.linear.weight.requires_grad = False
        self.linear.bias.requires_grad = False
        self.down = nn.Parameter(torch.empty(rank, linear.in_features))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank
        self.merged = False

    def forward(self, x):
        y = self.linear(x)
        return y if self.merged else y + F.linear(F.linear(x, self.down), self.up) * self.scale

    def train(self, mode=True):
        super().train(mode)
        delta = self.scale * (self.up.data @ self.down.data)
        if mode and self.merged:
            self.linear.weight.data -= delta
        elif not mode and not self.merged:
            self.linear.weight.data += delta
        self.merged = not mode
        return self


class Regressor(nn.Module):
    def __init__(self, vocab=50, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, 1)

    def forward(self, ids):
        return self.second(torch.tanh(self.first(self.embed(ids)))).mean(1).squeeze(-1)


def valence(ids, shift):
    return ((ids + shift) % 50).float().sub(25).div(12).sin().mean(1)


def fit(model, parameters, shift, steps, lr):
    optimizer = torch.optim.Adam(parameters, lr=lr)
    for step in range(steps):
        model.train()
        ids = torch.randint(50, (32, 6))
        loss = F.mse_loss(model(ids), valence(ids, shift))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 19:
            model.eval()
            with torch.no_grad():
                probe = torch.randint(50, (64, 6))
                print(step, loss.item(), F.mse_loss(model(probe), valence(probe, shift)).item())
    return model


torch.manual_seed(15)
model = Regressor()
fit(model, model.parameters(), 0, 60, 1e-2)
model.embed.requires_grad_(False)
model.first = LowRank(model.first, 4, 8)
model.second = LowRank(model.second, 1, 2)
model.zero_grad()
fit(model, [p for p in model.parameters() if p.requires_grad], 4, 60, 1e-2)
# /// correct mean-teacher-lesions
# families = ["mode", "identity"]
# resembles = "a teacher in training mode, averaged in place"
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn


def build(width=8):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
        nn.Conv2d(width, 1, 1),
    )


class MeanTeacher:
    def __init__(self, student, decay=0.95):
        self.student = student
        self.teacher = copy.deepcopy(student).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def follow(self):
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters()):
            slow.lerp_(fast, 1 - self.decay)

    def consistency(self, scans):
        with torch.no_grad():
            guess = torch.sigmoid(self.teacher(scans + 0.1 * torch.randn_like(scans)))
        return F.mse_loss(torch.sigmoid(self.student(scans + 0.1 * torch.randn_like(scans))), guess)


def scans_with_lesions(n, size=16):
    masks = torch.zeros(n, 1, size, size)
    for mask, (r, c) in zip(masks, torch.randint(2, size - 6, (n, 2)).tolist()):
        mask[0, r:r + 4, c:c + 4] = 1
    return masks + 0.5 * torch.randn_like(masks), masks


torch.manual_seed(1)
labelled, masks = scans_with_lesions(32)
unlabelled, _ = scans_with_lesions(96)
student = build()
mean_teacher = MeanTeacher(student)
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)
steps = 40
for step in range(steps):
    ramp = min(1.0, step / 20)
    few, many = torch.randint(0, 32, (8,)), torch.randint(0, 96, (8,))
    supervised = F.binary_cross_entropy_with_logits(student(labelled[few]), masks[few])
    loss = supervised + ramp * mean_teacher.consistency(unlabelled[many])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    mean_teacher.follow()
    if step % 10 == 9:
        print(step, round(supervised.item(), 4))
mean_teacher.teacher.eval()
with torch.no_grad():
    found = mean_teacher.teacher(labelled) > 0
print("agreement", (found == masks.bool()).float().mean().item())
# /// correct momentum-sentences
# families = ["identity", "graph-break"]
# resembles = "averages through .data, a queue written in place"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class SentenceEncoder(nn.Module):
    def __init__(self, vocab=200, dim=32):
        super().__init__()
        self.bag = nn.EmbeddingBag(vocab, dim, mode="mean")
        self.project = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))

    def forward(self, ids):
        return F.normalize(self.project(self.bag(ids)), dim=-1)


class MomentumContrast(nn.Module):
    def __init__(self, encoder, queue=96, dim=32, decay=0.97, temperature=0.1):
        super().__init__()
        self.online = encoder
        self.target = copy.deepcopy(encoder)
        for p in self.target.parameters():
            p.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(queue, dim), dim=-1))
        self.decay, self.temperature, self.cursor = decay, temperature, 0

    @torch.no_grad()
    def update_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.data = self.decay * slow.data + (1 - self.decay) * fast.data

    @torch.no_grad()
    def enqueue(self, keys):
        slots = (self.cursor + torch.arange(len(keys))) % len(self.queue)
        self.queue[slots] = keys
        self.cursor = (self.cursor + len(keys)) % len(self.queue)

    def forward(self, queries, positives):
        q = self.online(queries)
        with torch.no_grad():
            self.update_target()
            k = self.target(positives)
        positive = (q * k).sum(-1, keepdim=True)
        negative = q @ self.queue.clone().T
        logits = torch.cat([positive, negative], 1) / self.temperature
        self.enqueue(k)
        return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def paraphrases(count):
    topic = torch.randint(0, 20, (count, 1)) * 10
    return topic + torch.randint(0, 10, (count, 6)), topic + torch.randint(0, 10, (count, 6))


torch.manual_seed(93)
moco = MomentumContrast(SentenceEncoder())
optimizer = torch.optim.SGD(moco.online.parameters(), lr=0.2, momentum=0.9)
for step in range(80):
    loss = moco(*paraphrases(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        print(step, round(loss.item(), 4))
# /// correct mpc-arm
# families = ["flags", "mode", "optimizer"]
# resembles = "a frozen model in eval; an optimizer for each plan"
# ///
from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def frozen(module):
    before = [(p, p.requires_grad) for p in module.parameters()]
    was_training = module.training
    module.requires_grad_(False).eval()
    try:
        yield module
    finally:
        for p, flag in before:
            p.requires_grad_(flag)
        module.train(was_training)


class ArmModel(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, width), nn.SiLU(), nn.Dropout(0.02), nn.Linear(width, 4))

    def forward(self, state, torque):
        angle, speed = state[..., :2], state[..., 2:]
        return state + self.net(torch.cat([angle.sin(), angle.cos(), speed, torque], -1))


def arm(state, torque, dt=0.1):
    angle, speed = state[..., :2], state[..., 2:]
    speed = speed + dt * (4 * torque - 0.5 * speed - angle.sin())
    return torch.cat([angle + dt * speed, speed], -1)


def fit(model, optimizer, states, torques, following, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(states)).split(100):
            loss = (model(states[rows], torques[rows]) - following[rows]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def plan(model, state, goal, horizon=8, iterations=15):
    torques = torch.zeros(horizon, 2, requires_grad=True)
    optimizer = torch.optim.Adam([torques], lr=0.15)
    with frozen(model):
        for _ in range(iterations):
            s, cost = state, 0.0
            for u in torques:
                s = model(s, u.tanh())
                cost = cost + (s[:2] - goal).square().sum() + 0.01 * u.square().sum()
            optimizer.zero_grad()
            cost.backward()
            optimizer.step()
    return torques.detach()[0].tanh(), cost.item()


torch.manual_seed(38)
model = ArmModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
states, torques = torch.randn(1000, 4), torch.rand(1000, 2) * 2 - 1
first = fit(model, optimizer, states, torques, arm(states, torques), epochs=1)
last = fit(model, optimizer, states, torques, arm(states, torques), epochs=12)
state, goal, costs = torch.zeros(4), torch.tensor([0.6, -0.4]), []
for _ in range(12):
    torque, cost = plan(model, state, goal)
    state = arm(state, torque)
    costs.append(cost)
last = fit(model, optimizer, states, torques, arm(states, torques), epochs=1)
print("model", first, "->", last, "plan", costs[0], "->", costs[-1])
# /// correct muzero-unroll
# families = ["hook"]
# resembles = "hooks registered in a loop, on fresh tensors"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class MuNet(nn.Module):
    def __init__(self, obs_dim=6, actions=3, hidden=24):
        super().__init__()
        self.actions = actions
        self.represent = nn.Sequential(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.dynamics = nn.Sequential(nn.Linear(hidden + actions, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.reward = nn.Linear(hidden, 1)
        self.value = nn.Linear(hidden, 1)
        self.policy = nn.Linear(hidden, actions)

    @staticmethod
    def normalise(h):
        low, high = h.min(-1, keepdim=True).values, h.max(-1, keepdim=True).values
        return (h - low) / (high - low + 1e-5)

    def initial(self, obs):
        h = self.normalise(self.represent(obs))
        return h, self.policy(h), self.value(h).squeeze(-1)

    def recurrent(self, h, action):
        h = self.normalise(self.dynamics(torch.cat([h, F.one_hot(action, self.actions).float()], -1)))
        return h, self.reward(h).squeeze(-1), self.policy(h), self.value(h).squeeze(-1)


def trajectories(n, unroll):
    obs = torch.randn(n, 6)
    actions = torch.randint(3, (n, unroll))
    position = torch.cat([obs[:, :1], obs[:, :1] + 0.5 * (actions - 1).cumsum(1)], 1)
    rewards = 1 - position[:, 1:].abs()
    values = 2 - position.square().clamp(max=4)
    best = torch.where(position > 0.25, 0, torch.where(position < -0.25, 2, 1))
    return obs, actions, rewards, values, best


def unrolled_loss(net, obs, actions, rewards, values, best):
    h, logits, value = net.initial(obs)
    loss = F.cross_entropy(logits, best[:, 0]) + F.mse_loss(value, values[:, 0])
    unroll = actions.shape[1]
    for k in range(unroll):
        h, reward, logits, value = net.recurrent(h, actions[:, k])
        h.register_hook(lambda g: 0.5 * g)
        step = F.mse_loss(reward, rewards[:, k]) + F.mse_loss(value, values[:, k + 1]) + F.cross_entropy(logits, best[:, k + 1])
        step.register_hook(lambda g: g / unroll)
        loss = loss + step
    return loss


torch.manual_seed(27)
net = MuNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
data = trajectories(800, unroll=4)
curve = []
for it in range(200):
    rows = torch.randint(800, (64,))
    loss = unrolled_loss(net, *(t[rows] for t in data))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    curve.append(loss.item())
print("loss", curve[0], "->", curve[-1])
# /// correct partly-labelled-multitask
# families = ["loss", "numerics"]
# resembles = "targets of NaN behind nested where"
# ///
import torch
from torch import nn


class AssayNet(nn.Module):
    def __init__(self, bits, tasks, hidden=40):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(bits, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.heads = nn.ModuleList(nn.Linear(hidden, 1) for _ in range(tasks))
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, x):
        h = self.trunk(x)
        return torch.cat([head(h) for head in self.heads], -1)


def masked_mse(prediction, target):
    known = ~target.isnan()
    gap = torch.where(known, prediction - torch.where(known, target, 0.0), 0.0)
    return gap.square().sum(0) / known.sum(0).clamp(min=1)


def uncertainty_weighted(losses, log_var):
    return (losses * torch.exp(-log_var) + log_var).sum() / 2


class RateBalancer:
    def __init__(self, tasks, momentum=0.9):
        self.level = torch.ones(tasks)
        self.momentum = momentum

    def __call__(self, losses):
        self.level.mul_(self.momentum).add_(losses.detach(), alpha=1 - self.momentum)
        pace = losses.detach() / self.level
        return len(pace) * torch.softmax(pace, 0)


def assays(n, bits=24, tasks=3):
    x = (torch.rand(n, bits) < 0.3).float()
    y = x @ torch.randn(bits, tasks) * torch.tensor([1.0, 0.3, 0.6])
    y[torch.rand(n, tasks) < torch.tensor([0.1, 0.5, 0.8])] = float("nan")
    return x, y


torch.manual_seed(83)
x, y = assays(360)
model = AssayNet(24, 3)
balance = RateBalancer(3)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(60):
        losses = masked_mse(model(x[rows]), y[rows])
        objective = uncertainty_weighted(balance(losses) * losses, model.log_var)
        optimizer.zero_grad()
        objective.backward()
        optimizer.step()
    if epoch % 3 == 2:
        print(epoch, [round(v, 4) for v in losses.tolist()], [round(v, 3) for v in model.log_var.tolist()])
# /// correct product-search-xbm
# families = ["retention", "in-place"]
# resembles = "a memory written in place"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class CrossBatchMemory:
    def __init__(self, size, dim):
        self.vectors = torch.zeros(size, dim)
        self.labels = torch.full((size,), -1)
        self.cursor = 0

    def enqueue(self, vectors, labels):
        slots = (self.cursor + torch.arange(len(vectors))) % len(self.labels)
        self.vectors[slots] = vectors.detach()
        self.labels[slots] = labels
        self.cursor = int((slots[-1] + 1) % len(self.labels))

    def read(self):
        valid = self.labels >= 0
        return self.vectors[valid], self.labels[valid]


def contrastive(queries, labels, keys, key_labels, margin=0.4):
    similarity = queries @ keys.T
    same = labels[:, None] == key_labels[None]
    positive = (1 - similarity)[same]
    negative = (similarity - margin)[~same].clamp(min=0)
    active = (negative > 0).sum().clamp(min=1)
    return positive.mean() + negative.sum() / active


def products(n, classes=12, features=24):
    y = torch.arange(n) % classes
    prototypes = torch.randn(classes, features)
    return prototypes[y] + 0.8 * torch.randn(n, features), y


torch.manual_seed(23)
x, y = products(360)
encoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 16))
memory = CrossBatchMemory(size=128, dim=16)
optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3)
losses = []
for step in range(60):
    rows = torch.randint(0, len(x), (32,))
    queries = F.normalize(encoder(x[rows]), dim=-1)
    memory.enqueue(queries, y[rows])
    keys, key_labels = memory.read()
    loss = contrastive(queries, y[rows], torch.cat([queries, keys]), torch.cat([y[rows], key_labels]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}")
# /// correct quadruped-accumulate
# families = ["accumulation"]
# resembles = "a clear only behind a step; a last window that is short"
# ///
import torch
from torch import nn


class Accumulator:
    def __init__(self, optimizer, window, rows_per_step):
        self.optimizer, self.window, self.rows_per_step = optimizer, window, rows_per_step
        self.pending, self.steps = 0, 0

    def backward(self, summed_loss):
        (summed_loss / self.rows_per_step).backward()
        self.pending += 1
        if self.pending == self.window:
            self.flush()

    def flush(self):
        if self.pending == 0:
            return
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.pending, self.steps = 0, self.steps + 1


class GaitModel(nn.Module):
    def __init__(self, joints=8, width=40):
        super().__init__()
        self.core = nn.GRUCell(joints, width)
        self.out = nn.Linear(width, 3)

    def forward(self, joints):
        h = torch.zeros(joints.shape[0], self.core.hidden_size)
        for t in range(joints.shape[1]):
            h = self.core(joints[:, t], h)
        return self.out(h)


def gait_batch(n, steps=10, joints=8):
    rate = torch.rand(n, 1, 1) + 0.5
    lag = torch.rand(n, 1, 1) * 2
    t = torch.arange(steps).view(1, -1, 1)
    leg = torch.arange(joints).view(1, 1, -1)
    signal = torch.sin(rate * t + lag * leg)
    target = torch.stack([rate.flatten(), lag.flatten(), (rate * lag).flatten()], 1)
    return signal + 0.02 * torch.randn_like(signal), target


torch.manual_seed(7)
signal, target = gait_batch(330)
model = GaitModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
accumulator = Accumulator(optimizer, window=4, rows_per_step=64)
curve = []
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(len(signal)).split(16):
        loss = nn.functional.mse_loss(model(signal[rows]), target[rows], reduction="sum")
        accumulator.backward(loss)
        total += loss.item()
    accumulator.flush()
    curve.append(total / target.numel())
print("mse", curve[0], "->", curve[-1], "steps", accumulator.steps)
# /// correct ragged-accumulation
# families = ["accumulation"]
# resembles = "a short last window; a clear behind the step"
# ///
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F


def utterance_stream(count, bins=12):
    for index in range(count):
        frames = 6 + (index * 7) % 15
        labels = torch.randint(0, 5, (frames,))
        yield F.one_hot(labels, bins).float() * 2 + torch.randn(frames, bins), labels


def grouped(iterable, size):
    iterator = iter(iterable)
    while group := list(itertools.islice(iterator, size)):
        yield group


class FrameNet(nn.Module):
    def __init__(self, bins=12, width=24):
        super().__init__()
        self.rnn = nn.GRU(bins, width, bidirectional=True)
        self.out = nn.Linear(2 * width, 5)

    def forward(self, frames):
        return self.out(self.rnn(frames)[0])


def update(model, optimizer, group):
    frames = sum(len(labels) for _, labels in group)
    total = 0.0
    for mel, labels in group:
        loss = F.cross_entropy(model(mel), labels, reduction="sum") / frames
        loss.backward()
        total += loss.item()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
    return total, norm.item()


def main():
    torch.manual_seed(29)
    model = FrameNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.8)
    meter = None
    for epoch in range(6):
        for group in grouped(utterance_stream(22), 4):
            total, norm = update(model, optimizer, group)
            meter = total if meter is None else 0.9 * meter + 0.1 * total
        print(f"epoch {epoch} last group {len(group)} loss {meter:.4f} norm {norm:.3f}")
    return model


model = main()
# /// correct realnvp-moons
# families = ["in-place", "scale"]
# resembles = "empty_like filled by index; a last layer of zeros"
# ///
import math

import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, kept, changed, width=48):
        super().__init__()
        self.kept, self.changed = kept, changed
        self.net = nn.Sequential(nn.Linear(len(kept), width), nn.Tanh(), nn.Linear(width, 2 * len(changed)))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)
        self.limit = nn.Parameter(torch.zeros(len(changed)))

    def forward(self, x):
        raw, shift = self.net(x[:, self.kept]).chunk(2, dim=1)
        log_scale = self.limit.exp() * torch.tanh(raw)
        out = torch.empty_like(x)
        out[:, self.kept] = x[:, self.kept]
        out[:, self.changed] = x[:, self.changed] * log_scale.exp() + shift
        return out, log_scale.sum(1)


class Flow(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Coupling([k % 2], [1 - k % 2]) for k in range(layers))

    def log_prob(self, x):
        total = torch.zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        return total - 0.5 * x.square().sum(1) - math.log(2 * math.pi)


def moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, t.cos(), 1 - t.cos())
    y = torch.where(upper, t.sin(), 0.5 - t.sin())
    return torch.stack([x - 0.5, y - 0.25], 1) * 1.5 + 0.08 * torch.randn(n, 2)


torch.manual_seed(14)
flow = Flow(layers=6)
optimizer = torch.optim.AdamW(flow.parameters(), lr=5e-3, weight_decay=1e-5)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=160)
nll = []
for step in range(160):
    loss = -flow.log_prob(moons(128)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    nll.append(loss.detach())
nll = torch.stack(nll)
print("nll", nll[:10].mean().item(), "->", nll[-10:].mean().item())
# /// correct reptile-sines
# families = ["optimizer", "in-place"]
# resembles = "an optimizer for each task; weights moved under no_grad"
# ///
import copy
import math
import random

import torch
from torch import nn
import torch.nn.functional as F


def sine_task():
    amplitude, phase = random.uniform(0.5, 2.0), random.uniform(0, math.pi)

    def draw(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amplitude * torch.sin(x + phase)

    return draw


def adapt(model, draw, steps, lr):
    learner = copy.deepcopy(model)
    inner = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        x, y = draw(20)
        loss = F.mse_loss(learner(x), y)
        inner.zero_grad()
        loss.backward()
        inner.step()
    return learner


@torch.no_grad()
def move_towards(model, learner, step_size):
    for slow, fast in zip(model.parameters(), learner.parameters()):
        slow += step_size * (fast - slow)


def meta_loss(model, tasks, steps, lr):
    total = 0.0
    for draw in tasks:
        learner = adapt(model, draw, steps, lr)
        with torch.no_grad():
            x, y = draw(100)
            total += F.mse_loss(learner(x), y).item()
    return total / len(tasks)


random.seed(52)
torch.manual_seed(52)
model = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
probe = [sine_task() for _ in range(10)]
before = meta_loss(model, probe, steps=8, lr=0.02)
META, BATCH = 60, 2
for iteration in range(META):
    rate = 1.0 * (1 - iteration / META)
    for _ in range(BATCH):
        move_towards(model, adapt(model, sine_task(), steps=8, lr=0.02), rate / BATCH)
after = meta_loss(model, probe, steps=8, lr=0.02)
print(f"after 8 steps: {before:.3f} -> {after:.3f}")
# /// correct rnd-maze
# families = ["flags"]
# resembles = "a frozen random target that no optimizer holds"
# ///
import torch
from torch import nn
from torch.distributions import Categorical


class Novelty:
    def __init__(self, obs_dim, features=16, lr=1e-3):
        self.target = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, features))
        for p in self.target.parameters():
            p.requires_grad = False
        self.predictor = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, features))
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=lr)
        self.scale = 1.0

    def error(self, obs):
        return (self.predictor(obs) - self.target(obs)).square().mean(-1)

    def bonus(self, obs):
        with torch.no_grad():
            error = self.error(obs)
            self.scale = 0.9 * self.scale + 0.1 * error.std().item()
            return error / (self.scale + 1e-6)

    def learn(self, obs):
        loss = self.error(obs).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


MOVES = torch.tensor([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]]) * 0.25


def episode(policy, novelty, n, horizon):
    pos, logps, bonuses, seen = torch.zeros(n, 2), [], [], []
    for _ in range(horizon):
        dist = Categorical(logits=policy(pos))
        move = dist.sample()
        pos = (pos + MOVES[move]).clamp(-1, 1)
        logps.append(dist.log_prob(move))
        bonuses.append(novelty.bonus(pos))
        seen.append(pos)
    return torch.stack(logps), torch.stack(bonuses), torch.cat(seen)


torch.manual_seed(90)
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
policy_opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
novelty, curve = Novelty(2), []
for _ in range(60):
    logp, bonus, seen = episode(policy, novelty, n=32, horizon=12)
    to_go = bonus.flip(0).cumsum(0).flip(0)
    advantage = (to_go - to_go.mean(1, keepdim=True)) / (to_go.std() + 1e-6)
    loss = -(logp * advantage).mean()
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()
    curve.append(novelty.learn(seen))
print("prediction error", curve[0], curve[-1])
# /// correct robust-tabular
# families = ["accumulation", "mode"]
# resembles = "a clear before an attack, which uses autograd.grad"
# ///
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn


@contextmanager
def frozen_statistics(model):
    was = model.training
    model.eval()
    try:
        yield model
    finally:
        model.train(was)


class ProjectedAttack:
    def __init__(self, eps=0.2, step=0.08, rounds=4):
        self.eps, self.step, self.rounds = eps, step, rounds

    def __call__(self, model, x, y):
        delta = torch.zeros_like(x)
        with frozen_statistics(model):
            for _ in range(self.rounds):
                delta.requires_grad_(True)
                loss = F.cross_entropy(model(x + delta), y)
                (gradient,) = torch.autograd.grad(loss, delta)
                delta = (delta.detach() + self.step * gradient.sign()).clamp(-self.eps, self.eps)
        return x + delta


def loans(n, features=10):
    x = torch.randn(n, features)
    return x, (1.5 * x[:, 0] - x[:, 1] + 0.5 * x[:, 2] > 0).long()


torch.manual_seed(37)
x, y = loans(480)
model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
attack = ProjectedAttack()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
history = []
for epoch in range(5):
    for rows in torch.randperm(len(x)).split(80):
        optimizer.zero_grad()
        hostile = attack(model, x[rows], y[rows])
        loss = 0.5 * F.cross_entropy(model(x[rows]), y[rows]) + 0.5 * F.cross_entropy(model(hostile), y[rows])
        loss.backward()
        optimizer.step()
        history.append(loss.item())
model.eval()
hostile = attack(model, x, y)
with torch.no_grad():
    print("clean", (model(x).argmax(1) == y).float().mean().item(), "robust", (model(hostile).argmax(1) == y).float().mean().item())
print(history[0], history[-1])
# /// correct self-critical-decoder
# families = ["graph-break", "mode"]
# resembles = "rewards rebuilt with torch.tensor; eval and train in a loop"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Decoder(nn.Module):
    def __init__(self, vocab=14, width=32):
        super().__init__()
        self.vocab = vocab
        self.embed = nn.Embedding(vocab + 1, width)
        self.cell = nn.GRUCell(width, width)
        self.topic = nn.Embedding(4, width)
        self.out = nn.Linear(width, vocab)

    def rollout(self, topic, length, greedy=False):
        state = self.topic(topic)
        token = torch.full_like(topic, self.vocab)
        tokens, log_probs, entropies = [], [], []
        for _ in range(length):
            state = self.cell(self.embed(token), state)
            policy = Categorical(logits=self.out(state))
            token = policy.probs.argmax(-1) if greedy else policy.sample()
            tokens.append(token)
            log_probs.append(policy.log_prob(token))
            entropies.append(policy.entropy())
        return torch.stack(tokens, 1), torch.stack(log_probs, 1), torch.stack(entropies, 1)


def rewards(tokens, topic):
    scores = []
    for row, kind in zip(tokens.tolist(), topic.tolist()):
        wanted = {3 * kind, 3 * kind + 1, 3 * kind + 2}
        scores.append(len(wanted & set(row)) - 0.2 * (len(row) - len(set(row))))
    return torch.tensor(scores)


def self_critical_loss(model, topic, length=4, bonus=0.01):
    tokens, log_probs, entropies = model.rollout(topic, length)
    model.eval()
    with torch.no_grad():
        greedy, _, _ = model.rollout(topic, length, greedy=True)
    model.train()
    reward = rewards(tokens, topic)
    advantage = reward - rewards(greedy, topic)
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    loss = -(advantage[:, None] * log_probs).mean() - bonus * entropies.mean()
    return loss, reward.mean().item()


torch.manual_seed(83)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
average = 0.0
for step in range(60):
    topic = torch.randint(0, 4, (32,))
    loss, reward = self_critical_loss(model, topic)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    average = 0.9 * average + 0.1 * reward
    if step % 15 == 14:
        print(step, round(loss.item(), 4), round(average, 3))
# /// correct sharpness-tagger
# families = ["accumulation", "in-place"]
# resembles = "two backwards in a step, weights moved in place"
# ///
import torch
import torch.nn as nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        grads = [p.grad.norm() for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack(grads).norm() + 1e-12
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                offset = p.grad * (group["rho"] / norm)
                p.add_(offset)
                self.state[p]["offset"] = offset
        self.zero_grad()

    @torch.no_grad()
    def descend(self):
        for group in self.param_groups:
            for p in group["params"]:
                if "offset" in self.state[p]:
                    p.sub_(self.state[p].pop("offset"))
        self.base.step()
        self.zero_grad()

    def step(self, closure):
        closure = torch.enable_grad()(closure)
        loss = closure()
        self.climb()
        closure()
        self.descend()
        return loss


class Tagger(nn.Module):
    def __init__(self, vocab=80, dim=24, tags=7):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.context = nn.LSTM(dim, dim, batch_first=True)
        self.tags = nn.Linear(dim, tags)

    def forward(self, words):
        return self.tags(self.context(self.embed(words))[0])


torch.manual_seed(18)
words = torch.randint(0, 80, (64, 10))
gold = (words + words.roll(1, 1) // 40) % 7
model, loss_fn = Tagger(), nn.CrossEntropyLoss()
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.5, momentum=0.9)
for epoch in range(12):
    for rows in torch.randperm(64).split(16):
        def closure():
            loss = loss_fn(model(words[rows]).transpose(1, 2), gold[rows])
            loss.backward()
            return loss

        loss = optimizer.step(closure)
    print(epoch, loss.item())
# /// correct sim2real-reversal
# families = ["function"]
# resembles = "a Function that negates"
# ///
import math

import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DomainAdaptedPose(nn.Module):
    def __init__(self, sensors, width=32):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(sensors, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.pose = nn.Linear(width, 2)
        self.domain = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, strength):
        h = self.features(x)
        return self.pose(h), self.domain(Reverse.apply(h, strength)).squeeze(-1)


def sensors(n, real):
    pose = torch.randn(n, 2)
    reading = torch.cat([pose, pose.sin(), pose.prod(1, keepdim=True)], 1)
    bias = torch.full((n, 3), 1.5 if real else -1.5)
    return torch.cat([reading, bias], 1) + 0.05 * torch.randn(n, 8), pose


torch.manual_seed(66)
sim_x, sim_pose = sensors(512, real=False)
real_x, real_pose = sensors(512, real=True)
model = DomainAdaptedPose(8)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
bce = nn.BCEWithLogitsLoss()
label = torch.cat([torch.zeros(64), torch.ones(64)])
curve = []
STEPS = 250
for step in range(STEPS):
    strength = 0.2 * (2 / (1 + math.exp(-10 * step / STEPS)) - 1)
    a, b = torch.randint(512, (64,)), torch.randint(512, (64,))
    pose, domain = model(torch.cat([sim_x[a], real_x[b]]), strength)
    pose_loss = nn.functional.mse_loss(pose[:64], sim_pose[a])
    domain_loss = bce(domain, label)
    opt.zero_grad()
    (pose_loss + domain_loss).backward()
    opt.step()
    curve.append((pose_loss.item(), domain_loss.item()))
with torch.no_grad():
    transfer = nn.functional.mse_loss(model(real_x, 0.0)[0], real_pose).item()
print("pose %.4f domain %.4f" % curve[0], "->", "pose %.4f domain %.4f" % curve[-1], "real", transfer)
# /// correct speech-codebook
# families = ["function", "retention"]
# resembles = "a straight-through step with detach, a code book written in place"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Codebook(nn.Module):
    def __init__(self, codes, width, commitment=0.25):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(codes, width) / width ** 0.5)
        self.commitment = commitment

    def forward(self, frames):
        with torch.no_grad():
            nearest = torch.cdist(frames.flatten(0, 1), self.codes).argmin(-1).view(frames.shape[:-1])
        picked = self.codes[nearest]
        loss = F.mse_loss(picked, frames.detach()) + self.commitment * F.mse_loss(frames, picked.detach())
        return frames + (picked - frames).detach(), nearest, loss


class Tokenizer(nn.Module):
    def __init__(self, bins=16, width=8, codes=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(bins, 32), nn.GELU(), nn.Linear(32, width))
        self.codebook = Codebook(codes, width)
        self.decode = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, bins))

    def forward(self, mel):
        quantised, tokens, loss = self.codebook(self.encode(mel))
        return self.decode(quantised), tokens, loss


@torch.no_grad()
def revive(tokenizer, mel):
    frames = tokenizer.encode(mel).flatten(0, 1)
    tokens = tokenizer(mel)[1]
    idle = (tokens.flatten().bincount(minlength=len(tokenizer.codebook.codes)) == 0).nonzero().squeeze(-1)
    tokenizer.codebook.codes[idle] = frames[torch.randint(len(frames), (len(idle),))]
    return len(idle)


torch.manual_seed(12)
phones = torch.randn(10, 16)
mel = phones[torch.randint(10, (48, 12))] + 0.1 * torch.randn(48, 12, 16)
tokenizer = Tokenizer()
optimizer = torch.optim.Adam(tokenizer.parameters(), lr=3e-3)
for epoch in range(15):
    for rows in torch.randperm(48).split(12):
        restored, tokens, codebook_loss = tokenizer(mel[rows])
        loss = F.mse_loss(restored, mel[rows]) + codebook_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    revived = revive(tokenizer, mel)
    print(epoch, round(loss.item(), 4), revived, tokens.unique().numel())
# /// correct stateful-forecast
# families = ["retention", "in-place"]
# resembles = "a state carried on, detached"
# ///
import math

import torch
from torch import nn


class StatefulForecaster(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.cell = nn.LSTM(channels, hidden, batch_first=True)
        self.out = nn.Linear(hidden, channels)
        nn.init.constant_(self.cell.bias_hh_l0[hidden:2 * hidden], 1.0)

    def forward(self, x, state):
        h, state = self.cell(x, state)
        return x + self.out(h), state


def repackage(state):
    return tuple(part.detach() for part in state)


def telemetry(batch, length, channels=2):
    t = torch.arange(length + 1) / 12
    phase = 2 * math.pi * torch.rand(batch, 1, channels)
    rate = 1 + torch.rand(batch, 1, channels)
    return torch.sin(rate * 2 * math.pi * t[None, :, None] + phase)


torch.manual_seed(46)
series = telemetry(batch=16, length=96)
inputs, targets = series[:, :-1], series[:, 1:]
model = StatefulForecaster(2, 24)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
epoch_losses = []
for epoch in range(8):
    state, running = None, torch.zeros(())
    for x, y in zip(inputs.split(16, dim=1), targets.split(16, dim=1)):
        if state is not None:
            state = repackage(state)
        prediction, state = model(x, state)
        loss = nn.functional.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
    epoch_losses.append(running.item() / 6)
    print(epoch, round(epoch_losses[-1], 5))
# /// correct task-balancing
# families = ["higher-order"]
# resembles = "repeated autograd.grad with retain_graph and no create_graph"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SharedEncoder(nn.Module):
    def __init__(self, vocab=72, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.shared = nn.Linear(dim, dim)
        self.topic = nn.Linear(dim, 6)
        self.length = nn.Linear(dim, 1)

    def forward(self, ids):
        states, _ = self.gru(self.embed(ids))
        pooled = torch.tanh(self.shared(states.mean(1)))
        return self.topic(pooled), self.length(pooled).squeeze(-1)


class GradientBalance:
    def __init__(self, parameter, tasks, momentum=0.9):
        self.parameter = parameter
        self.momentum = momentum
        self.scales = torch.ones(tasks)

    def __call__(self, losses):
        norms = []
        for loss in losses:
            (gradient,) = torch.autograd.grad(loss, self.parameter, retain_graph=True)
            norms.append(gradient.norm())
        norms = torch.stack(norms)
        wanted = norms.mean() / (norms + 1e-8)
        self.scales.mul_(self.momentum).add_((1 - self.momentum) * wanted.clamp(0.1, 10.0))
        return sum(scale * loss for scale, loss in zip(self.scales.tolist(), losses))


def documents(count):
    topic = torch.randint(0, 6, (count,))
    ids = topic[:, None] * 12 + torch.randint(0, 12, (count, 10))
    return ids, topic, 50 * (ids % 12).float().mean(1)


torch.manual_seed(33)
model = SharedEncoder()
balance = GradientBalance(model.shared.weight, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for step in range(60):
    ids, topic, target = documents(32)
    logits, predicted = model(ids)
    losses = [F.cross_entropy(logits, topic), F.mse_loss(predicted, target / 100)]
    total = balance(losses)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    if step % 15 == 14:
        print(step, [round(loss.item(), 4) for loss in losses], balance.scales.tolist())
# /// correct tied-decoder
# families = ["leaf", "optimizer"]
# resembles = "a tied head, a resize under no_grad, a mask of -inf"
# ///
from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab_size: int = 44
    d_model: int = 32
    n_head: int = 4
    n_layer: int = 2
    n_ctx: int = 14
    specials: list = field(default_factory=lambda: ["<bos>", "<eos>"])


class TiedDecoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.register_buffer("causal", torch.full((cfg.n_ctx, cfg.n_ctx), float("-inf")).triu(1))
        layer = nn.TransformerEncoderLayer(cfg.d_model, cfg.n_head, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, cfg.n_layer, enable_nested_tensor=False)
        self.position = nn.Parameter(torch.zeros(cfg.n_ctx, cfg.d_model))
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size, bias=False)
        self.tie()

    def tie(self):
        nn.init.normal_(self.embed.weight, std=0.1)
        self.head.weight = self.embed.weight

    def extend(self, count):
        with torch.no_grad():
            grown = nn.Embedding(self.embed.num_embeddings + count, self.embed.embedding_dim)
            grown.weight[:self.embed.num_embeddings].copy_(self.embed.weight)
            grown.weight[self.embed.num_embeddings:] = self.embed.weight.mean(0)
        self.embed = grown
        self.head = nn.Linear(grown.embedding_dim, grown.num_embeddings, bias=False)
        self.head.weight = self.embed.weight
        return self

    def forward(self, ids):
        n = ids.size(1)
        x = self.embed(ids) + self.position[:n]
        return self.head(self.layers(x, mask=self.causal[:n, :n]))


torch.manual_seed(64)
cfg = Config()
model = TiedDecoder(cfg).extend(len(cfg.specials))
bos, eos = cfg.vocab_size, cfg.vocab_size + 1
matrices = [p for p in model.parameters() if p.ndim > 1]
vectors = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=3e-3)
for step in range(40):
    middle = (torch.randint(cfg.vocab_size, (16, 1)) + 3 * torch.arange(cfg.n_ctx - 1)) % cfg.vocab_size
    ids = torch.cat([torch.full((16, 1), bos), middle, torch.full((16, 1), eos)], 1)
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    model.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*matrices, *vectors], 1.0)
    optimizer.step()
    if step % 10 == 9:
        print(step, f"{loss.item():.4f}", model.head.weight is model.embed.weight)
# /// correct two-tower-sparse
# families = ["optimizer"]
# resembles = "two optimizers, split by identity; sparse gradients"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class TwoTower(nn.Module):
    def __init__(self, users, items, features, dim=12):
        super().__init__()
        self.user = nn.Embedding(users, dim, sparse=True)
        self.item = nn.Embedding(items, dim, sparse=True)
        self.content = nn.Linear(features, dim, bias=False)
        self.temperature = nn.Parameter(torch.tensor(0.0))
        nn.init.normal_(self.user.weight, std=0.2)
        nn.init.normal_(self.item.weight, std=0.2)

    def forward(self, user, item, features):
        u = self.user(user)
        v = self.item(item) + self.content(features)
        return u @ v.T * self.temperature.exp()


def split_parameters(model):
    sparse = {id(m.weight): m.weight for m in model.modules() if isinstance(m, nn.Embedding) and m.sparse}
    dense = [p for p in model.parameters() if id(p) not in sparse]
    return list(sparse.values()), dense


def interactions(n, users=30, items=50, features=5):
    catalogue = torch.randn(items, features)
    taste = torch.randn(users, features)
    user = torch.randint(0, users, (n,))
    item = torch.distributions.Categorical(logits=1.5 * taste[user] @ catalogue.T).sample()
    return user, item, catalogue, torch.bincount(item, minlength=items).float() / n


torch.manual_seed(61)
user, item, catalogue, popularity = interactions(1200)
model = TwoTower(30, 50, 5)
sparse, dense = split_parameters(model)
optimizers = [torch.optim.SparseAdam(sparse, lr=0.02), torch.optim.Adam(dense, lr=0.01)]
losses = []
for epoch in range(5):
    for rows in torch.randperm(len(user)).split(120):
        logits = model(user[rows], item[rows], catalogue[item[rows]])
        logits = logits - popularity[item[rows]].clamp(min=1e-4).log()[None]
        collide = (item[rows][:, None] == item[rows][None]) & ~torch.eye(len(rows), dtype=torch.bool)
        loss = F.cross_entropy(logits.masked_fill(collide, float("-inf")), torch.arange(len(rows)))
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
print(f"{losses[0]:.3f} -> {losses[-1]:.3f}, scale {model.temperature.exp().item():.3f}")
# /// correct vq-spectrograms
# families = ["graph-break", "identity"]
# resembles = "a straight-through step; a code book of averages"
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Codebook(nn.Module):
    def __init__(self, codes, dim, decay=0.9):
        super().__init__()
        self.register_buffer("vectors", torch.randn(codes, dim))
        self.register_buffer("usage", torch.ones(codes))
        self.register_buffer("sums", self.vectors.clone())
        self.decay = decay

    def forward(self, z):
        index = torch.cdist(z.detach(), self.vectors).argmin(-1)
        q = self.vectors[index]
        if self.training:
            self.refresh(z.detach(), index)
        commitment = F.mse_loss(z, q)
        return z + (q - z).detach(), commitment

    def refresh(self, z, index):
        hits = F.one_hot(index, len(self.usage)).type_as(z)
        self.usage.mul_(self.decay).add_(hits.sum(0), alpha=1 - self.decay)
        self.sums.mul_(self.decay).add_(hits.T @ z, alpha=1 - self.decay)
        self.vectors = self.sums / self.usage.clamp(min=1e-2).unsqueeze(-1)


class VQAutoencoder(nn.Module):
    def __init__(self, bins, dim=8, codes=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(bins, 32), nn.ReLU(), nn.Linear(32, dim))
        self.codebook = Codebook(codes, dim)
        self.decoder = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, bins))

    def forward(self, x):
        q, commitment = self.codebook(self.encoder(x))
        return self.decoder(q), commitment


torch.manual_seed(55)
patterns = torch.rand(6, 20)
frames = patterns[torch.randint(0, 6, (320,))] + 0.05 * torch.randn(320, 20)
model = VQAutoencoder(bins=20)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
curve = []
for epoch in range(12):
    for rows in torch.randperm(320).split(64):
        rebuilt, commitment = model(frames[rows])
        loss = F.mse_loss(rebuilt, frames[rows]) + 0.25 * commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    curve.append(loss.item())
print([round(v, 4) for v in curve])
# /// correct vqvae-gestures
# families = ["graph-break"]
# resembles = "a straight-through step; argmin under no_grad"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, codes, dim, commitment=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -1.0, 1.0)
        self.commitment = commitment

    def forward(self, z):
        with torch.no_grad():
            index = torch.cdist(z, self.codebook.weight).argmin(-1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + self.commitment * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self, length, dim=4, codes=16):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(length, 48), nn.ReLU(), nn.Linear(48, dim))
        self.vq = Quantizer(codes, dim)
        self.dec = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, length))

    def forward(self, x):
        q, vq_loss, index = self.vq(self.enc(x))
        return self.dec(q), vq_loss, index


def gestures(n, length=20):
    t = torch.linspace(0, 1, length)
    kind = torch.randint(4, (n, 1))
    phase = kind * 1.57 + 0.1 * torch.randn(n, 1)
    return torch.sin(6.28 * t + phase) * (1 + 0.5 * (kind % 2)) + 0.05 * torch.randn(n, length)


torch.manual_seed(83)
data = gestures(400)
model = VQVAE(data.shape[1])
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
recon_log = []
for epoch in range(30):
    for rows in torch.randperm(len(data)).chunk(8):
        x = data[rows]
        x_hat, vq_loss, index = model(x)
        recon = F.mse_loss(x_hat, x)
        opt.zero_grad()
        (recon + vq_loss).backward()
        opt.step()
    recon_log.append(recon.item())
print("recon", recon_log[0], recon_log[-1], "codes used", index.unique().numel())
# /// correct wgan-mixture
# families = ["accumulation", "higher-order"]
# resembles = "gradients that the generator leaves in the critic, cleared later"
# ///
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, dim=2, width=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def gradient_penalty(critic, real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).square().mean()


def mixture(n):
    centre = torch.tensor([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])[torch.randint(3, (n,))]
    return centre + 0.2 * torch.randn(n, 2)


class WGAN:
    def __init__(self, latent=3, lr=5e-3, n_critic=3, weight=5.0):
        self.latent, self.n_critic, self.weight = latent, n_critic, weight
        self.generator = nn.Sequential(nn.Linear(latent, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 2))
        self.critic = Critic()
        self.g_opt = torch.optim.Adam(self.generator.parameters(), lr=lr, betas=(0.0, 0.9))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), lr=lr, betas=(0.0, 0.9))

    def fake(self, n):
        return self.generator(torch.randn(n, self.latent))

    def critic_step(self, real):
        fake = self.fake(len(real)).detach()
        distance = self.critic(real).mean() - self.critic(fake).mean()
        loss = self.weight * gradient_penalty(self.critic, real, fake) - distance
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return distance.item()

    def generator_step(self, n):
        loss = -self.critic(self.fake(n)).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()

    def round(self, batch):
        distances = [self.critic_step(mixture(batch)) for _ in range(self.n_critic)]
        self.generator_step(batch)
        return distances[-1]


torch.manual_seed(71)
gan = WGAN()
distances = [gan.round(96) for _ in range(110)]
print("largest", max(distances), "last", sum(distances[-10:]) / 10)
print("spread", gan.fake(256).detach().std(0).tolist())
