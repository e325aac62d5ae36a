# /// correct accumulation-with-short-last-group
# families = ["accumulation"]
# resembles = "the last window of an epoch is shorter, and is divided by its own length"
# ///
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 3
    micro: int = 6
    group: int = 4
    lr: float = 0.05


def groups(loader, size):
    pending = []
    for batch in loader:
        pending.append(batch)
        if len(pending) == size:
            yield pending
            pending = []
    if pending:
        yield pending


def train(model, loader, config):
    optimizer = torch.optim.SGD(model.parameters(), lr=config.lr, momentum=0.9)
    for epoch in range(config.epochs):
        for group in groups(loader, config.group):
            rows = sum(len(y) for _, y in group)
            for x, y in group:
                loss = nn.functional.cross_entropy(model(x), y, reduction="sum") / rows
                loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            optimizer.zero_grad()
        print(epoch, loss.item() * rows / len(y))


torch.manual_seed(17)
config = Config()
x = torch.randn(63, 8)
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 2))
train(model, DataLoader(TensorDataset(x, y), batch_size=config.micro, shuffle=True), config)
# /// correct actor-through-frozen-critic
# families = ["flags"]
# resembles = "the critic requires no grad while the actor's loss goes through it"
# ///
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def frozen(module):
    module.requires_grad_(False)
    try:
        yield module
    finally:
        module.requires_grad_(True)


class Ddpg:
    def __init__(self, observation=3, actions=1):
        self.actor = nn.Sequential(nn.Linear(observation, 24), nn.ReLU(), nn.Linear(24, actions), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(observation + actions, 24), nn.ReLU(), nn.Linear(24, 1))
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=2e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=5e-3)

    def q(self, state, action):
        return self.critic(torch.cat([state, action], 1)).squeeze(1)

    def learn(self, state, action, reward):
        critic_loss = F.mse_loss(self.q(state, action), reward)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        with frozen(self.critic):
            actor_loss = -self.q(state, self.actor(state)).mean()
            self.actor_opt.zero_grad()
            actor_loss.backward()
            self.actor_opt.step()
        return critic_loss.item(), actor_loss.item()


torch.manual_seed(28)
agent = Ddpg()
for step in range(14):
    state = torch.randn(48, 3)
    with torch.no_grad():
        action = (agent.actor(state) + 0.3 * torch.randn(48, 1)).clamp(-1, 1)
    reward = -(action[:, 0] - state[:, 0].tanh()).square()
    report = agent.learn(state, action, reward)
print(report)
# /// correct averaged-weights-swapped-for-evaluation
# families = ["in-place"]
# resembles = "weights are written under no_grad and put back"
# ///
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


class Average:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    def update(self):
        for s, p in zip(self.shadow, self.model.parameters()):
            s.lerp_(p.detach(), 1 - self.decay)

    @contextlib.contextmanager
    def applied(self):
        backup = [p.detach().clone() for p in self.model.parameters()]
        self.write(self.shadow)
        try:
            yield
        finally:
            self.write(backup)

    @torch.no_grad()
    def write(self, values):
        for p, v in zip(self.model.parameters(), values):
            p.copy_(v)


torch.manual_seed(19)
model = nn.Sequential(nn.Linear(4, 24), nn.SiLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
average = Average(model, 0.8)
x = torch.randn(100, 4)
y = (x[:, :1] * x[:, 1:2]).tanh() + 0.2 * torch.randn(100, 1)
for epoch in range(5):
    for rows in torch.randperm(80).split(20):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update()
    with average.applied(), torch.no_grad():
        print(epoch, loss.item(), F.mse_loss(model(x[80:]), y[80:]).item())
# /// correct backward-with-example-weights
# families = ["loss"]
# resembles = "backward of a vector, with a gradient given"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Importance:
    """Weights of examples by age: recent rows count more."""

    def __init__(self, half_life):
        self.half_life = half_life

    def __call__(self, age):
        weight = 0.5 ** (age / self.half_life)
        return weight / weight.sum()


torch.manual_seed(35)
rows = 120
x = torch.randn(rows, 7)
age = torch.arange(rows).float().flip(0)
drift = torch.linspace(-1, 1, rows)
y = drift * x[:, 0] + x[:, 1]
net = nn.Sequential(nn.Linear(7, 20), nn.GELU(), nn.Linear(20, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
importance = Importance(half_life=30.0)
for step in range(15):
    index = torch.randperm(rows)[:40]
    each = F.smooth_l1_loss(net(x[index]).squeeze(1), y[index], reduction="none")
    optimizer.zero_grad()
    each.backward(importance(age[index]))
    optimizer.step()
    if step % 5 == 0:
        print(step, each.detach().mean().item())
# /// correct binary-code-straight-through
# families = ["graph-break"]
# resembles = "a sign has no derivative, and another is put in its place"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class HashNet(nn.Module):
    def __init__(self, fields=16, bits=12):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(fields, 32), nn.ReLU(), nn.Linear(32, bits))
        self.decode = nn.Linear(bits, fields)

    def code(self, x):
        soft = torch.tanh(self.encode(x))
        hard = torch.where(soft >= 0, 1.0, -1.0)
        return soft + (hard - soft).detach(), soft

    def forward(self, x):
        code, soft = self.code(x)
        return self.decode(code), soft


def quantisation_gap(soft):
    return (soft.abs() - 1).square().mean()


torch.manual_seed(2)
data = torch.randn(128, 5) @ torch.randn(5, 16)
net = HashNet()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(4):
    for rows in torch.randperm(128).split(32):
        output, soft = net(data[rows])
        loss = F.mse_loss(output, data[rows]) + 0.1 * quantisation_gap(soft)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
with torch.no_grad():
    bits = net.code(data)[0] > 0
print(bits.float().mean().item())
# /// correct checkpointed-blocks
# families = ["graph-break"]
# resembles = "blocks are computed again in the backward pass"
# ///
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Deep(nn.Module):
    def __init__(self, width=20, depth=5):
        super().__init__()
        self.first = nn.Linear(6, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1)) for _ in range(depth)
        )
        self.last = nn.Linear(width, 1)
        self.saving = True

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            if self.saving and self.training:
                x = x + checkpoint(block, x, use_reentrant=False)
            else:
                x = x + block(x)
        return self.last(x).squeeze(-1)


torch.manual_seed(14)
net = Deep()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
x = torch.randn(80, 6)
y = torch.sin(x[:, 0]) * x[:, 1]
for epoch in range(5):
    net.train()
    for rows in torch.randperm(80).split(20):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct diffusion-with-sampling
# families = ["graph-break"]
# resembles = "samples are drawn under no_grad between steps"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Denoiser(nn.Module):
    def __init__(self, steps, width=32):
        super().__init__()
        self.time = nn.Embedding(steps, width)
        self.a, self.b, self.c = nn.Linear(2, width), nn.Linear(width, width), nn.Linear(width, 2)
        nn.init.zeros_(self.c.weight)
        nn.init.zeros_(self.c.bias)

    def forward(self, x, t):
        h = F.silu(self.a(x) + self.time(t))
        return self.c(F.silu(self.b(h)) + h)


class Diffusion:
    def __init__(self, steps=15):
        self.steps = steps
        self.beta = torch.linspace(1e-3, 0.3, steps)
        self.keep = torch.cumprod(1 - self.beta, 0)

    def loss(self, model, x):
        t = torch.randint(0, self.steps, (len(x),))
        noise = torch.randn_like(x)
        keep = self.keep[t][:, None]
        return F.mse_loss(model(keep.sqrt() * x + (1 - keep).sqrt() * noise, t), noise)

    @torch.no_grad()
    def sample(self, model, n):
        x = torch.randn(n, 2)
        for i in reversed(range(self.steps)):
            eps = model(x, torch.full((n,), i))
            x = (x - self.beta[i] / (1 - self.keep[i]).sqrt() * eps) / (1 - self.beta[i]).sqrt()
            if i:
                x += self.beta[i].sqrt() * torch.randn_like(x)
        return x


torch.manual_seed(40)
diffusion, model = Diffusion(), Denoiser(15)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(20):
    angle = torch.rand(64) * 6.2832
    loss = diffusion.loss(model, torch.stack([angle.cos(), angle.sin()], 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), diffusion.sample(model, 50).norm(dim=1).mean().item())
# /// correct double-dqn-with-slow-target
# families = ["graph-break"]
# resembles = "the target is computed without a graph"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class QNet(nn.Module):
    def __init__(self, observation, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(observation, 32), nn.ReLU())
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, actions)

    def forward(self, x):
        h = self.body(x)
        a = self.advantage(h)
        return self.value(h) + a - a.mean(1, keepdim=True)


@torch.no_grad()
def track(slow, fast, rate):
    for s, f in zip(slow.parameters(), fast.parameters()):
        s.mul_(1 - rate).add_(f, alpha=rate)


torch.manual_seed(7)
online = QNet(4, 3)
target = copy.deepcopy(online)
target.requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=2e-3)
for step in range(16):
    state, action = torch.randn(64, 4), torch.randint(0, 3, (64,))
    following = state + 0.1 * F.one_hot(action, 4)
    reward = -following.abs().sum(1)
    with torch.no_grad():
        best = online(following).argmax(1, keepdim=True)
        goal = reward + 0.9 * target(following).gather(1, best).squeeze(1)
    predicted = online(state).gather(1, action[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(predicted, goal)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    track(target, online, 0.05)
    if step % 4 == 0:
        print(step, loss.item())
# /// correct dropout-kept-on-for-uncertainty
# families = ["mode"]
# resembles = "dropout is on in an evaluation"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Regressor(nn.Module):
    def __init__(self, width=32, rate=0.1):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(1, width), nn.Linear(width, width), nn.Linear(width, 2)
        self.norm = nn.BatchNorm1d(width)
        self.rate = rate

    def forward(self, x):
        h = F.relu(self.norm(self.a(x)))
        h = F.dropout(F.relu(self.b(h)), self.rate, training=True)
        mean, log_variance = self.c(h).chunk(2, 1)
        return mean, log_variance.clamp(-6, 3)


def nll(mean, log_variance, y):
    return 0.5 * (log_variance + (y - mean).square() * torch.exp(-log_variance)).mean()


@torch.no_grad()
def predict(net, x, draws=20):
    net.eval()
    means = torch.stack([net(x)[0] for _ in range(draws)])
    net.train()
    return means.mean(0), means.std(0)


torch.manual_seed(39)
x = torch.rand(100, 1) * 4 - 2
y = torch.sin(2 * x) + 0.1 * torch.randn_like(x) * x.abs()
net = Regressor()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(6):
    for rows in torch.randperm(100).split(25):
        loss = nll(*net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    mean, spread = predict(net, torch.tensor([[0.0], [4.0]]))
    print(epoch, loss.item(), spread.flatten().tolist())
# /// correct evolution-strategy
# families = ["optimizer"]
# resembles = "weights change without a backward call"
# ///
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Env:
    """Score of a controller on a noisy point mass, not differentiable by intention."""

    def __call__(self, net, steps=12):
        state, score = torch.tensor([1.0, 0.0]), 0.0
        for _ in range(steps):
            push = float(net(state).sign())
            state = torch.stack([state[0] + 0.2 * state[1], state[1] + 0.2 * push])
            score -= float(state[0] ** 2)
        return score


@torch.no_grad()
def estimate(net, env, sigma, pairs):
    centre = parameters_to_vector(net.parameters()).clone()
    gradient = torch.zeros_like(centre)
    for _ in range(pairs):
        noise = torch.randn_like(centre)
        vector_to_parameters(centre + sigma * noise, net.parameters())
        up = env(net)
        vector_to_parameters(centre - sigma * noise, net.parameters())
        gradient += (up - env(net)) * noise / (2 * sigma * pairs)
    vector_to_parameters(centre, net.parameters())
    return gradient


torch.manual_seed(29)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-2)
env = Env()
for generation in range(8):
    ascent = estimate(net, env, sigma=0.1, pairs=8)
    start = 0
    for p in net.parameters():
        p.grad = -ascent[start:start + p.numel()].view_as(p).clone()
        start += p.numel()
    optimizer.step()
    with torch.no_grad():
        print(generation, env(net))
# /// correct first-order-meta-gradient
# families = ["higher-order"]
# resembles = "inner gradients are taken without create_graph"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class FirstOrderMeta:
    """First-order MAML: the adapted copy's gradients are the meta-gradients."""

    def __init__(self, net, inner_lr=0.1, inner_steps=2, lr=1e-2):
        self.net = net
        self.inner_lr, self.inner_steps = inner_lr, inner_steps
        self.optimizer = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)

    def adapt(self, x, y):
        learner = copy.deepcopy(self.net)
        for _ in range(self.inner_steps):
            grads = torch.autograd.grad(F.cross_entropy(learner(x), y), list(learner.parameters()))
            with torch.no_grad():
                for p, g in zip(learner.parameters(), grads):
                    p.sub_(self.inner_lr * g)
        return learner

    def step(self, episodes):
        self.optimizer.zero_grad()
        total = 0.0
        for (x, y), (qx, qy) in episodes:
            learner = self.adapt(x, y)
            loss = F.cross_entropy(learner(qx), qy)
            grads = torch.autograd.grad(loss, list(learner.parameters()))
            for p, g in zip(self.net.parameters(), grads):
                p.grad = g / len(episodes) if p.grad is None else p.grad + g / len(episodes)
            total += loss.item()
        self.optimizer.step()
        return total / len(episodes)


def episode(ways=3, shots=5):
    centres = torch.randn(ways, 6)
    y = torch.arange(ways).repeat(2 * shots)
    x = centres[y] + 0.4 * torch.randn(len(y), 6)
    half = ways * shots
    return (x[:half], y[:half]), (x[half:], y[half:])


torch.manual_seed(10)
learner = FirstOrderMeta(nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)))
for iteration in range(8):
    print(iteration, learner.step([episode() for _ in range(4)]))
# /// correct fixed-point-layer
# families = ["function"]
# resembles = "an iteration without a graph, and a backward of its own"
# ///
import torch
import torch.nn as nn


class Equilibrium(nn.Module):
    """Fixed point found without a graph; one call more gives the gradient's path, a hook solves the adjoint."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width, bias=False)
        nn.init.orthogonal_(self.inner.weight, gain=0.5)

    def cell(self, z, x):
        return torch.tanh(self.inner(z) + x)

    @staticmethod
    def solve(function, start, iterations=25):
        z = start
        for _ in range(iterations):
            z = function(z)
        return z

    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.cell(z, x), torch.zeros_like(x))
        if not self.training:
            return z
        z = self.cell(z, x)
        z0 = z.detach().requires_grad_()
        f0 = self.cell(z0, x.detach())

        def adjoint(grad):
            return self.solve(lambda g: torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad, grad)

        z.register_hook(adjoint)
        return z


torch.manual_seed(34)
net = nn.Sequential(nn.Linear(6, 16), Equilibrium(16), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
x = torch.randn(64, 6)
y = torch.sin(x.sum(1, keepdim=True))
for epoch in range(4):
    for rows in torch.randperm(64).split(16):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct gan-with-two-discriminator-steps
# families = ["accumulation"]
# resembles = "the generator's loss leaves gradients in the discriminator"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def mlp(inputs, outputs, width=24):
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


class Training:
    def __init__(self, noise=3):
        self.noise = noise
        self.g, self.d = mlp(noise, 2), mlp(2, 1)
        self.opt_g = torch.optim.Adam(self.g.parameters(), lr=1e-3, betas=(0.5, 0.9))
        self.opt_d = torch.optim.Adam(self.d.parameters(), lr=2e-3, betas=(0.5, 0.9))

    def fake(self, n):
        return self.g(torch.randn(n, self.noise))

    def discriminator(self, real):
        self.opt_d.zero_grad()
        on_real = F.softplus(-self.d(real)).mean()
        on_real.backward()
        on_fake = F.softplus(self.d(self.fake(len(real)).detach())).mean()
        on_fake.backward()
        self.opt_d.step()
        return (on_real + on_fake).item()

    def generator(self, n):
        loss = F.softplus(-self.d(self.fake(n))).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        return loss.item()


def ring(n):
    angle = torch.randint(0, 8, (n, 1)) * 0.7854
    return torch.cat([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(3)
training = Training()
for iteration in range(8):
    d_losses = [training.discriminator(ring(48)) for _ in range(2)]
    print(iteration, d_losses[-1], training.generator(48))
# /// correct hard-gumbel-selection
# families = ["graph-break"]
# resembles = "a hard choice with the soft one's gradient"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Selector(nn.Module):
    """Chooses k columns of a table while the predictor learns from them."""

    def __init__(self, columns, k=3):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(k, columns))

    def forward(self, x, temperature):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=temperature, hard=True)
        else:
            choice = F.one_hot(self.logits.argmax(1), x.shape[1]).float()
        return x @ choice.T


torch.manual_seed(30)
x = torch.randn(150, 12)
y = (x[:, 2] + x[:, 7] > 0).long()
selector, predictor = Selector(12), nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam([
    {"params": selector.parameters(), "lr": 5e-2},
    {"params": predictor.parameters(), "lr": 1e-2},
])
for epoch in range(5):
    selector.train()
    temperature = max(0.5, 2.0 - 0.4 * epoch)
    for rows in torch.randperm(150).split(30):
        loss = F.cross_entropy(predictor(selector(x[rows], temperature)), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    selector.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (predictor(selector(x, 1.0)).argmax(1) == y).float().mean().item())
# /// correct heat-equation-pinn
# families = ["higher-order"]
# resembles = "derivatives of derivatives of a smooth network"
# ///
import math

import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return torch.sin(math.pi * x) * (1 + t * self.layers(torch.cat([x, t], 1)))


def partial(u, v):
    return torch.autograd.grad(u.sum(), v, create_graph=True)[0]


def residual(net, n):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    u = net(x, t)
    return partial(u, t) - 0.1 * partial(partial(u, x), x)


torch.manual_seed(38)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
history = []
for step in range(20):
    optimizer.zero_grad()
    loss = residual(net, 64).square().mean()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
x, t = torch.full((1, 1), 0.5), torch.full((1, 1), 1.0)
print(history[0], history[-1], net(x, t).item(), math.exp(-0.1 * math.pi ** 2))
# /// correct image-optimised-against-frozen-net
# families = ["optimizer"]
# resembles = "the optimizer holds an image and no weight of the net"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1)])

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = F.relu(layer(x))
            found.append(x)
            x = F.avg_pool2d(x, 2)
        return found


def gram(f):
    n, c, h, w = f.shape
    f = f.reshape(n, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


torch.manual_seed(33)
net = Features().eval().requires_grad_(False)
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
with torch.no_grad():
    wanted_content = net(content)[-1]
    wanted_style = [gram(f) for f in net(style)]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.03)
for step in range(12):
    found = net(image)
    loss = F.mse_loss(found[-1], wanted_content)
    loss = loss + 100 * sum(F.mse_loss(gram(f), w) for f, w in zip(found, wanted_style))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
    if step % 4 == 0:
        print(step, loss.item())
# /// correct in-place-on-fresh-scores
# families = ["in-place"]
# resembles = "scores are masked in place before anything saved them"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, padding):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2)
        scores /= math.sqrt(d // self.heads)
        scores.masked_fill_(padding[:, None, None, :], -1e4)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, d)
        y = self.out(y)
        y += x
        return y


class Net(nn.Module):
    def __init__(self, vocab=20, width=12):
        super().__init__()
        self.embed, self.attention = nn.Embedding(vocab, width, padding_idx=0), Attention(width)
        self.feed = nn.Sequential(nn.Linear(width, 24), nn.ReLU(inplace=True), nn.Linear(24, 2))

    def forward(self, tokens):
        padding = tokens == 0
        h = self.attention(self.embed(tokens), padding)
        return self.feed(h.masked_fill(padding.unsqueeze(-1), 0).sum(1) / (~padding).sum(1, keepdim=True))


torch.manual_seed(37)
tokens = torch.randint(1, 20, (80, 7))
tokens[torch.arange(7) >= torch.randint(3, 8, (80, 1))] = 0
label = (tokens == 3).any(1).long()
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(5):
    for rows in torch.randperm(80).split(20):
        loss = F.cross_entropy(net(tokens[rows]), label[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct layers-added-to-the-optimizer-later
# families = ["optimizer"]
# resembles = "layers join the optimizer by add_param_group"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tuner:
    def __init__(self, body, head):
        self.net = nn.Sequential(body, head)
        body.requires_grad_(False)
        self.optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, gamma=0.5)

    def unfreeze(self, lr):
        body = self.net[0]
        body.requires_grad_(True)
        self.optimizer.add_param_group({"params": body.parameters(), "lr": lr, "initial_lr": lr})
        if hasattr(self.scheduler, "base_lrs"):
            self.scheduler.base_lrs.append(lr)

    def epoch(self, x, y):
        for rows in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(self.net(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.scheduler.step()
        return loss.item()


torch.manual_seed(26)
x = torch.randn(80, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
tuner = Tuner(nn.Sequential(nn.Linear(6, 30), nn.ReLU()), nn.Linear(30, 2))
for epoch in range(6):
    if epoch == 3:
        tuner.unfreeze(lr=0.02)
    print(epoch, tuner.epoch(x, y), [g["lr"] for g in tuner.optimizer.param_groups])
# /// correct linear-probe-on-frozen-features
# families = ["flags"]
# resembles = "features come from a frozen net in eval mode"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Probe(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(width, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


def random_features(fields, width):
    return nn.Sequential(nn.Linear(fields, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.5))


torch.manual_seed(5)
x = torch.randn(120, 9)
y = (x[:, 0] > x[:, 1]).long()
probe = Probe(random_features(9, 40), 40, 2)
optimizer = torch.optim.SGD(probe.head.parameters(), lr=0.2, momentum=0.9)
for epoch in range(5):
    probe.train()
    for rows in torch.randperm(120).split(40):
        loss = F.cross_entropy(probe(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    probe.eval()
    with torch.no_grad():
        print(epoch, (probe(x).argmax(1) == y).float().mean().item())
# /// correct logistic-regression-lbfgs
# families = ["optimizer"]
# resembles = "a closure that clears and walks back several times"
# ///
import argparse

import torch
import torch.nn.functional as F


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ridge", type=float, default=1e-3)
    return parser.parse_args([])


def make_data(n=150, fields=6):
    x = torch.randn(n, fields)
    w = torch.randn(fields)
    return x, (torch.sigmoid(x @ w) > torch.rand(n)).float()


def fit(x, y, args):
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], lr=1, max_iter=5, line_search_fn="strong_wolfe")
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x @ weight + bias, y) + args.ridge * weight.square().sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    for _ in range(args.rounds):
        optimizer.step(closure)
    return weight.detach(), bias.detach(), calls


args = options()
torch.manual_seed(11)
x, y = make_data()
weight, bias, calls = fit(x, y, args)
print(calls[0], calls[-1], ((x @ weight + bias > 0) == y.bool()).float().mean().item())
# /// correct maml-sine-functional
# families = ["higher-order"]
# resembles = "gradients of gradients by functional calls"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


def task(n=10):
    amplitude, phase = 0.5 + 2 * torch.rand(1), 3.14 * torch.rand(1)
    x = torch.rand(2 * n, 1) * 8 - 4
    y = amplitude * torch.sin(x + phase)
    return (x[:n], y[:n]), (x[n:], y[n:])


def adapt(net, params, support, rate, steps):
    for _ in range(steps):
        loss = F.mse_loss(functional_call(net, params, (support[0],)), support[1])
        grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=True)
        params = {k: p - rate * g for (k, p), g in zip(params.items(), grads)}
    return params


torch.manual_seed(9)
net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
meta = torch.optim.Adam(net.parameters(), lr=3e-3)
for iteration in range(10):
    meta.zero_grad()
    total = 0.0
    for _ in range(4):
        support, query = task()
        fast = adapt(net, dict(net.named_parameters()), support, 0.05, 2)
        loss = F.mse_loss(functional_call(net, fast, (query[0],)), query[1])
        (loss / 4).backward()
        total += loss.item() / 4
    meta.step()
    print(iteration, total)
# /// correct momentum-encoder-queue
# families = ["retention"]
# resembles = "a queue of keys without graphs"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Moco(nn.Module):
    def __init__(self, encoder, width, size=64, momentum=0.9, temperature=0.2):
        super().__init__()
        self.query = encoder
        self.key = copy.deepcopy(encoder).requires_grad_(False)
        self.momentum, self.temperature = momentum, temperature
        self.register_buffer("queue", F.normalize(torch.randn(size, width), dim=1))
        self.pointer = 0

    @torch.no_grad()
    def follow(self):
        for k, q in zip(self.key.parameters(), self.query.parameters()):
            k.data = self.momentum * k.data + (1 - self.momentum) * q.data

    @torch.no_grad()
    def enqueue(self, keys):
        rows = (self.pointer + torch.arange(len(keys))) % len(self.queue)
        self.queue[rows] = keys
        self.pointer = int((self.pointer + len(keys)) % len(self.queue))

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=1)
        with torch.no_grad():
            self.follow()
            k = F.normalize(self.key(b), dim=1)
        logits = torch.cat([(q * k).sum(1, keepdim=True), q @ self.queue.clone().T], dim=1)
        self.enqueue(k)
        return F.cross_entropy(logits / self.temperature, torch.zeros(len(a), dtype=torch.long))


torch.manual_seed(24)
model = Moco(nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 8)), width=8)
optimizer = torch.optim.AdamW(model.query.parameters(), lr=5e-3)
for step in range(16):
    x = torch.randn(16, 12)
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 4 == 0:
        print(step, loss.item())
# /// correct one-head-per-step
# families = ["flags"]
# resembles = "each step gives gradients to one of several heads"
# ///
import random

import torch
import torch.nn as nn
import torch.nn.functional as F


class Multilingual(nn.Module):
    def __init__(self, languages, vocab=30, width=12):
        super().__init__()
        self.shared = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.heads = nn.ModuleDict({name: nn.Linear(width, vocab) for name in languages})

    def forward(self, tokens, language):
        return self.heads[language](self.rnn(self.shared(tokens))[0])


random.seed(12)
torch.manual_seed(12)
languages = {"de": 1, "fr": 2, "it": 3}
model = Multilingual(languages)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
seen = {name: [] for name in languages}
for step in range(24):
    language = random.choice(list(languages))
    start = torch.randint(0, 30, (16, 1))
    text = (start + languages[language] * torch.arange(9)) % 30
    logits = model(text[:, :-1], language)
    loss = F.cross_entropy(logits.flatten(0, 1), text[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    seen[language].append(loss.item())
print({name: (values[0], values[-1]) for name, values in seen.items()})
# /// correct phases-with-grad-mode-switch
# families = ["mode"]
# resembles = "grad mode is switched off and on again by calls"
# ///
import copy

import torch
import torch.nn as nn

torch.manual_seed(27)


def make_phase(n):
    x = torch.randn(n, 3, 6, 6)
    return x, (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()


data = {"train": make_phase(64), "val": make_phase(32)}
model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
best_weights, best_accuracy = copy.deepcopy(model.state_dict()), 0.0

for epoch in range(4):
    for phase in ("train", "val"):
        model.train(phase == "train")
        images, labels = data[phase]
        hits = 0
        for rows in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                logits = model(images[rows])
                loss = criterion(logits, labels[rows])
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            hits += (logits.argmax(1) == labels[rows]).sum().item()
        accuracy = hits / len(images)
        print(epoch, phase, loss.item(), accuracy)
        if phase == "val" and accuracy > best_accuracy:
            best_weights, best_accuracy = copy.deepcopy(model.state_dict()), accuracy
model.load_state_dict(best_weights)
# /// correct projected-conflicting-gradients
# families = ["hook"]
# resembles = "gradients are written by hand before the step"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


def project(grads):
    """PCGrad: takes from each task's gradient its component against the others."""
    out = []
    for i, g in enumerate(grads):
        g = g.clone()
        for j, other in enumerate(grads):
            dot = torch.dot(g, other)
            if i != j and dot < 0:
                g -= dot / other.square().sum() * other
        out.append(g)
    return torch.stack(out).mean(0)


def assign(parameters, vector):
    start = 0
    for p in parameters:
        p.grad = vector[start:start + p.numel()].view_as(p).clone()
        start += p.numel()


torch.manual_seed(16)
net = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
parameters = list(net.parameters())
optimizer = torch.optim.Adam(parameters, lr=5e-3)
x = torch.randn(64, 5)
for step in range(15):
    output = net(x)
    losses = [F.mse_loss(output[:, 0], x[:, 0] ** 2), F.l1_loss(output.sum(1), -x[:, 1])]
    grads = [flat(torch.autograd.grad(loss, parameters, retain_graph=True)) for loss in losses]
    assign(parameters, project(grads))
    optimizer.step()
    if step % 5 == 0:
        print(step, [loss.item() for loss in losses])
# /// correct pruned-weights-stay-zero
# families = ["hook"]
# resembles = "gradients and weights are multiplied by a mask"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def prune(layer, share):
    """Zeroes the smallest weights and keeps their gradients at zero from then on."""
    threshold = layer.weight.detach().abs().flatten().quantile(share)
    mask = (layer.weight.detach().abs() > threshold).float()
    with torch.no_grad():
        layer.weight.mul_(mask)
    layer.weight.register_hook(lambda grad: grad * mask)
    return mask


def train(net, optimizer, x, y, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(25):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(20)
x = torch.randn(100, 12)
y = x[:, :4].argmax(1)
net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 4))
print("dense", train(net, torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9), x, y, epochs=3))
masks = [prune(layer, 0.6) for layer in net if isinstance(layer, nn.Linear)]
print("sparse", train(net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), x, y, epochs=3))
for mask, layer in zip(masks, (net[0], net[2])):
    print(mask.mean().item(), bool((layer.weight[mask == 0] == 0).all()))
# /// correct reinforce-running-baseline
# families = ["loss"]
# resembles = "a baseline without gradient, a negative log-probability"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Bandit:
    """Contextual bandit whose best arm is the sign pattern of the context."""

    def __init__(self, arms=4):
        self.arms = arms

    def context(self, n):
        return torch.randn(n, 2)

    def reward(self, context, arm):
        best = (context[:, 0] > 0).long() * 2 + (context[:, 1] > 0).long()
        return (arm == best).float() + 0.1 * torch.randn(len(arm))


torch.manual_seed(1)
bandit = Bandit()
policy = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, bandit.arms))
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-2)
baseline, rewards = 0.0, []
for step in range(25):
    context = bandit.context(64)
    choice = Categorical(logits=policy(context))
    arm = choice.sample()
    reward = bandit.reward(context, arm)
    loss = -((reward - baseline) * choice.log_prob(arm)).mean() - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    rewards.append(reward.mean().item())
print(rewards[0], rewards[-1])
# /// correct residual-branches-start-at-zero
# families = ["scale"]
# resembles = "weights that begin at zero behind a residual connection"
# ///
import torch
import torch.nn as nn


class ReZero(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.gain = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x + self.gain * self.body(x)


class Net(nn.Module):
    def __init__(self, fields, width=24, depth=8):
        super().__init__()
        self.inside = nn.Linear(fields, width)
        self.blocks = nn.Sequential(*(ReZero(width) for _ in range(depth)))
        self.outside = nn.Linear(width, 1)

    def forward(self, x):
        return self.outside(self.blocks(self.inside(x))).squeeze(1)


torch.manual_seed(25)
x = torch.randn(96, 5)
y = x[:, 0] * x[:, 1] - x[:, 2].abs()
net = Net(5)
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.03)
for epoch in range(6):
    for rows in torch.randperm(96).split(24):
        loss = nn.functional.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), [round(b.gain.item(), 3) for b in net.blocks])
# /// correct reversal-layer-with-schedule
# families = ["function"]
# resembles = "a backward that changes the sign on purpose"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, features, amount):
        ctx.amount = amount
        return features.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.amount, None


class FairClassifier(nn.Module):
    def __init__(self, fields=8, width=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(fields, width), nn.ELU())
        self.task = nn.Linear(width, 1)
        self.group = nn.Linear(width, 1)

    def forward(self, x, amount):
        z = self.encoder(x)
        return self.task(z).squeeze(1), self.group(Flip.apply(z, amount)).squeeze(1)


torch.manual_seed(21)
group = torch.randint(0, 2, (120,)).float()
x = torch.randn(120, 8)
x[:, 0] += group
label = (x[:, 0] + x[:, 1] > 0.5).float()
model = FairClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    for rows in torch.randperm(120).split(30):
        wanted, guessed = model(x[rows], amount=min(1.0, epoch / 3))
        task = F.binary_cross_entropy_with_logits(wanted, label[rows])
        leak = F.binary_cross_entropy_with_logits(guessed, group[rows])
        optimizer.zero_grad()
        (task + leak).backward()
        optimizer.step()
    print(epoch, task.item(), leak.item())
# /// correct roots-with-guarded-argument
# families = ["numerics"]
# resembles = "a root whose argument is kept off zero before it"
# ///
import torch
import torch.nn as nn


def option_kink(s, strike):
    """Square root above the strike, zero below, with a finite slope on both sides."""
    gap = s - strike
    above = gap > 1e-3
    return torch.where(above, torch.sqrt(torch.where(above, gap, torch.ones_like(gap))), torch.zeros_like(gap))


class Hedge(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 1))
        self.strike = nn.Parameter(torch.tensor(1.0))

    def forward(self, path):
        wealth = torch.zeros(len(path))
        for t in range(path.shape[1] - 1):
            clock = torch.full((len(path), 1), t / path.shape[1])
            ratio = self.net(torch.cat([path[:, t:t + 1], clock], 1)).squeeze(1)
            wealth = wealth + ratio * (path[:, t + 1] - path[:, t])
        return wealth - option_kink(path[:, -1], self.strike)


torch.manual_seed(36)
hedge = Hedge()
optimizer = torch.optim.Adam(hedge.parameters(), lr=1e-2)
for step in range(15):
    path = (0.1 * torch.randn(128, 9)).cumsum(1).exp()
    outcome = hedge(path)
    loss = outcome.var() + (hedge.strike - 1.1) ** 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item(), hedge.strike.item())
# /// correct scheduled-sampling-decoder
# families = ["graph-break"]
# resembles = "tokens are chosen by argmax between steps"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, BOS = 14, 0


class Copier(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.encoder = nn.GRU(width, width, batch_first=True)
        self.cell = nn.GRUCell(width, width)
        self.out = nn.Linear(width, VOCAB)

    def forward(self, source, target, forcing):
        _, state = self.encoder(self.embed(source))
        state = state[0]
        token = torch.full((len(source),), BOS)
        loss = torch.zeros(())
        for t in range(target.shape[1]):
            state = self.cell(self.embed(token), state)
            logits = self.out(state)
            loss = loss + F.cross_entropy(logits, target[:, t])
            own = logits.argmax(1)
            use_truth = torch.rand(len(source)) < forcing
            token = torch.where(use_truth, target[:, t], own)
        return loss / target.shape[1]


torch.manual_seed(18)
model = Copier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(20):
    source = torch.randint(1, VOCAB, (24, 5))
    loss = model(source, source.flip(1), forcing=1 - step / 40)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 5 == 0:
        print(step, loss.item())
# /// correct sharpness-aware-two-passes
# families = ["accumulation"]
# resembles = "two backward calls, and a step in place between"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Sam:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho = list(params), base, rho
        self.shift = []

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm()
        self.shift = [self.rho * p.grad / (norm + 1e-12) for p in self.params]
        for p, e in zip(self.params, self.shift):
            p.add_(e)

    @torch.no_grad()
    def descend(self):
        for p, e in zip(self.params, self.shift):
            p.sub_(e)
        self.base.step()


torch.manual_seed(15)
net = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 3))
base = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
sam = Sam(net.parameters(), base)
x = torch.randn(90, 7)
y = x[:, :3].abs().argmax(1)
for epoch in range(4):
    for rows in torch.randperm(90).split(30):
        base.zero_grad()
        F.cross_entropy(net(x[rows]), y[rows]).backward()
        sam.ascend()
        base.zero_grad()
        loss = F.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        sam.descend()
    print(epoch, loss.item())
# /// correct siamese-stop-gradient
# families = ["graph-break"]
# resembles = "targets are detached on purpose"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())


class SimSiam(nn.Module):
    def __init__(self, fields=20, width=24):
        super().__init__()
        self.encoder = nn.Sequential(block(fields, 32), nn.Linear(32, width), nn.BatchNorm1d(width, affine=False))
        self.predictor = nn.Sequential(block(width, 8), nn.Linear(8, width))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        pa, pb = self.predictor(za), self.predictor(zb)
        return -(F.cosine_similarity(pa, zb.detach()).mean() + F.cosine_similarity(pb, za.detach()).mean()) / 2


def augment(x):
    return x * (torch.rand_like(x) > 0.15) + 0.1 * torch.randn_like(x)


torch.manual_seed(23)
data = torch.randn(96, 6) @ torch.randn(6, 20)
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
for epoch in range(4):
    for rows in torch.randperm(96).split(32):
        loss = model(augment(data[rows]), augment(data[rows]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        spread = F.normalize(model.encoder(data), dim=1).std(0).mean().item()
    print(epoch, loss.item(), spread)
# /// correct sparse-and-dense-optimizers
# families = ["optimizer"]
# resembles = "two optimizers share one backward call"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class WideDeep(nn.Module):
    def __init__(self, users=200, items=150, width=8):
        super().__init__()
        self.user = nn.Embedding(users, width, sparse=True)
        self.item = nn.Embedding(items, width, sparse=True)
        self.deep = nn.Sequential(nn.Linear(2 * width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, user, item):
        return self.deep(torch.cat([self.user(user), self.item(item)], 1)).squeeze(1)


class Both:
    def __init__(self, *optimizers):
        self.optimizers = optimizers

    def zero_grad(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()


torch.manual_seed(31)
model = WideDeep()
optimizer = Both(
    torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=1e-2),
    torch.optim.AdamW(model.deep.parameters(), lr=5e-3),
)
for step in range(12):
    user, item = torch.randint(0, 200, (64,)), torch.randint(0, 150, (64,))
    wanted = ((user + item) % 2).float()
    loss = F.binary_cross_entropy_with_logits(model(user, item), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct stacked-ensemble-by-vmap
# families = ["leaf"]
# resembles = "parameters are stacked into new leaves"
# ///
import copy

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap


def member():
    return nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))


torch.manual_seed(32)
members = [member() for _ in range(5)]
params, buffers = stack_module_state(members)
skeleton = copy.deepcopy(members[0]).to("meta")


def call(p, b, x):
    return functional_call(skeleton, (p, b), (x,))


predict = vmap(call, in_dims=(0, 0, None))
optimizer = torch.optim.Adam(params.values(), lr=1e-2)
x = torch.cat([torch.rand(20, 1) - 2, torch.rand(20, 1) + 1])
y = torch.sin(2 * x) + 0.05 * torch.randn_like(x)
for step in range(25):
    keep = (torch.rand(5, 40, 1) < 0.8).float()
    error = (predict(params, buffers, x) - y).square()
    loss = (keep * error).sum() / keep.sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 8 == 0:
        print(step, loss.item())
with torch.no_grad():
    grid = torch.linspace(-3, 3, 13)[:, None]
    print(predict(params, buffers, grid).std(0).squeeze(1).tolist())
# /// correct stochastic-depth-skips-blocks
# families = ["flags"]
# resembles = "blocks are skipped and get no gradient in some steps"
# ///
import torch
import torch.nn as nn


class Skippable(nn.Module):
    def __init__(self, channels, survival):
        super().__init__()
        self.survival = survival
        self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(2, channels), nn.ReLU(inplace=True),
                                  nn.Conv2d(channels, channels, 3, padding=1))

    def forward(self, x):
        if not self.training:
            return x + self.survival * self.body(x)
        if torch.rand(()) > self.survival:
            return x
        return x + self.body(x)


torch.manual_seed(13)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    *(Skippable(8, 1 - 0.15 * i) for i in range(4)),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
images = torch.randn(60, 1, 8, 8)
labels = (images[:, 0].var((1, 2)) > 1).long()
for epoch in range(4):
    net.train()
    for rows in torch.randperm(60).split(15):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, loss.item(), (net(images).argmax(1) == labels).float().mean().item())
# /// correct tied-language-model
# families = ["optimizer"]
# resembles = "one weight serves two modules"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Tied(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, vocab, bias=False)
        self.out.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=width ** -0.5)

    def forward(self, tokens):
        return self.out(self.rnn(self.embed(tokens))[0])


def batches(text, length, count):
    for _ in range(count):
        at = torch.randint(0, len(text) - length - 1, (12, 1)) + torch.arange(length + 1)
        chunk = text[at]
        yield chunk[:, :-1], chunk[:, 1:]


torch.manual_seed(22)
text = (torch.arange(600) * 7 % 23 + torch.arange(600) % 2) % 23
model = Tied(23, 16)
decayed = [p for n, p in model.named_parameters() if p.dim() > 1]
plain = [p for n, p in model.named_parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decayed}, {"params": plain, "weight_decay": 0.0}], lr=1e-2)
for step, (x, y) in enumerate(batches(text, 15, 18)):
    loss = F.cross_entropy(model(x).transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 0:
        print(step, loss.item())
# /// correct two-backwards-through-one-trunk
# families = ["retention"]
# resembles = "retain_graph is needed"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(6)
trunk = nn.Sequential(nn.Linear(8, 24), nn.Tanh())
shape, size = nn.Linear(24, 3), nn.Linear(24, 1)
parameters = [*trunk.parameters(), *shape.parameters(), *size.parameters()]
optimizer = torch.optim.Adam(parameters, lr=4e-3)
x = torch.randn(96, 8)
kind, amount = x[:, :3].argmax(1), x[:, 3:4].exp().clamp(max=5)


def trunk_gradient():
    return torch.cat([p.grad.flatten() for p in trunk.parameters()])


shares = []
for epoch in range(4):
    for rows in torch.randperm(96).split(24):
        z = trunk(x[rows])
        first = F.cross_entropy(shape(z), kind[rows])
        second = F.smooth_l1_loss(size(z), amount[rows])
        optimizer.zero_grad()
        first.backward(retain_graph=True)
        before = trunk_gradient().clone()
        second.backward()
        share = before.norm() / trunk_gradient().norm()
        shares.append(share.item())
        optimizer.step()
    print(epoch, first.item(), second.item(), shares[-1])
# /// correct wasserstein-with-penalty
# families = ["higher-order"]
# resembles = "create_graph for a gradient penalty"
# ///
import torch
import torch.nn as nn

torch.manual_seed(8)
generator = nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 1))
critic = nn.Sequential(nn.Linear(1, 24), nn.Softplus(), nn.Linear(24, 1))
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3)
c_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)


def real_batch(n):
    return torch.randn(n, 1) * 0.3 + torch.randint(0, 2, (n, 1)) * 2.0


def penalty(real, fake):
    share = torch.rand(len(real), 1)
    point = torch.lerp(real, fake, share).requires_grad_(True)
    slope = torch.autograd.grad(critic(point).sum(), point, create_graph=True)[0]
    return (slope.norm(2, dim=1) - 1).pow(2).mean()


for iteration in range(6):
    for _ in range(3):
        real, fake = real_batch(32), generator(torch.randn(32, 2)).detach()
        loss = critic(fake).mean() - critic(real).mean() + 5.0 * penalty(real, fake)
        c_opt.zero_grad(set_to_none=True)
        loss.backward()
        c_opt.step()
    g_loss = -critic(generator(torch.randn(32, 2))).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()
    print(iteration, loss.item(), g_loss.item())
# /// correct windows-with-detached-state
# families = ["retention"]
# resembles = "a state is detached between windows"
# ///
import torch
import torch.nn as nn


class Wave(nn.Module):
    def __init__(self, hidden=20):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, state):
        h, state = self.rnn(x, state)
        return self.out(h), state


def repackage(state):
    return None if state is None else state.detach()


torch.manual_seed(4)
t = torch.linspace(0, 30, 241)
series = torch.stack([torch.sin(t * w) for w in (0.8, 1.0, 1.3, 1.7)]).unsqueeze(-1)
net = Wave()
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3)
window = 30
for epoch in range(3):
    state, losses = None, []
    for begin in range(0, 240, window):
        x, y = series[:, begin:begin + window], series[:, begin + 1:begin + window + 1]
        output, state = net(x, repackage(state))
        loss = nn.functional.mse_loss(output[:, :y.shape[1]], y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.detach())
    print(epoch, torch.stack(losses).mean().item())
