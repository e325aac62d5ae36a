# /// correct accumulate-with-remainder
# families = ["accumulation"]
# resembles = "the last window of an epoch is shorter"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(115)
x = torch.randn(70, 5)
y = x.norm(dim=1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.Softplus(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 0.2, 1.0, total_iters=6)
accumulate = 3
updates = 0
for epoch in range(3):
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(loader):
        window = min(accumulate, len(loader) - i // accumulate * accumulate)
        loss = F.mse_loss(model(xb), yb)
        (loss / window).backward()
        if (i + 1) % accumulate == 0 or i + 1 == len(loader):
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            updates += 1
    print(epoch, loss.item(), updates)
# /// correct advantage-actor-critic
# families = ["graph-break"]
# resembles = "the advantage is detached"
# ///
import torch
import torch.nn as nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 24), nn.Tanh())
        self.pi, self.v = nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, s):
        h = self.trunk(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


torch.manual_seed(103)
agent = Agent()
optimizer = torch.optim.RMSprop(agent.parameters(), lr=2e-3)
for episode in range(8):
    log_probs, values, rewards, entropies = [], [], [], []
    state = torch.randn(3)
    for _ in range(12):
        dist, value = agent(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        values.append(value)
        rewards.append(float(action == state.argmax()))
        state = 0.7 * state + 0.5 * torch.randn(3)
    returns, g = [], 0.0
    for r in reversed(rewards):
        g = r + 0.8 * g
        returns.append(g)
    returns = torch.tensor(returns[::-1])
    values = torch.stack(values)
    advantage = (returns - values).detach()
    policy_loss = -(torch.stack(log_probs) * advantage).mean()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    print(episode, sum(rewards), loss.item())
# /// correct adversarial-pgd
# families = ["leaf"]
# resembles = "an input is made a leaf again after each attack step"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def pgd(model, x, y, eps=0.1, step=0.04, iterations=3):
    was_training = model.training
    model.eval()
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(iterations):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model((x + delta).clamp(0, 1)), y)
        grad, = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + step * grad.sign()).clamp(-eps, eps)
    model.train(was_training)
    return (x + delta).clamp(0, 1)


torch.manual_seed(135)
model = nn.Sequential(nn.Flatten(), nn.Linear(36, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
x, y = torch.rand(60, 1, 6, 6), torch.randint(0, 3, (60,))
model.train()
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        clean, label = x[rows], y[rows]
        attacked = pgd(model, clean, label)
        natural = model(clean)
        robust = F.kl_div(F.log_softmax(model(attacked), 1), F.softmax(natural, 1), reduction="batchmean")
        loss = F.cross_entropy(natural, label) + 2.0 * robust
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct amp-scaler-unscale-clip
# families = ["optimizer"]
# resembles = "gradients are unscaled before they are clipped"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(126)
model = nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 5))
x = torch.randn(96, 12)
y = x[:, :3].argmax(1)
accumulate = 2
for epoch in range(2):
    for i, rows in enumerate(torch.randperm(96).split(16)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits = model(x[rows])
        loss = F.cross_entropy(logits.float(), y[rows])
        scaler.scale(loss / accumulate).backward()
        if i % accumulate == accumulate - 1:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
    print(epoch, loss.item(), norm.item(), scaler.get_scale())
# /// correct binary-weights-ste
# families = ["graph-break"]
# resembles = "signs pass their gradient straight through"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SignSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        ctx.save_for_backward(w)
        return torch.where(w >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        w, = ctx.saved_tensors
        return grad * (w.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        scale = self.weight.detach().abs().mean(dim=1, keepdim=True)
        return F.linear(x, SignSTE.apply(self.weight) * scale, self.bias)


torch.manual_seed(109)
net = nn.Sequential(BinaryLinear(10, 32), nn.BatchNorm1d(32), nn.Hardtanh(), BinaryLinear(32, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(120, 10)
y = (x[:, :5].sum(1) > 0).long()
for epoch in range(4):
    net.train()
    for xb, yb in zip(x.split(30), y.split(30)):
        loss = F.cross_entropy(net(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for layer in net:
                if isinstance(layer, BinaryLinear):
                    layer.weight.clamp_(-1, 1)
    print(epoch, loss.item())
# /// correct byol-momentum-encoder
# families = ["flags"]
# resembles = "a momentum encoder requires no gradient"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class BYOL(nn.Module):
    def __init__(self, encoder, dim, tau=0.95):
        super().__init__()
        self.online, self.target, self.tau = encoder, copy.deepcopy(encoder), tau
        self.predictor = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, dim))
        for p in self.target.parameters():
            p.requires_grad = False

    @torch.no_grad()
    def update_target(self):
        for slow, fast in zip(self.target.parameters(), self.online.parameters()):
            slow.mul_(self.tau).add_(fast, alpha=1 - self.tau)

    def half(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=1)
        return (2 - 2 * (p * z).sum(dim=1)).mean()

    def forward(self, a, b):
        return self.half(a, b) + self.half(b, a)


torch.manual_seed(105)
model = BYOL(nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 8)), 8)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
data = torch.randn(96, 10)
for epoch in range(3):
    for batch in data[torch.randperm(96)].split(24):
        view = lambda: batch + 0.2 * torch.randn_like(batch)
        loss = model(view(), view())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.update_target()
    print(epoch, loss.item())
# /// correct checkpointed-blocks
# families = ["retention"]
# resembles = "blocks are computed again in backward"
# ///
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * dim, dim))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Deep(nn.Module):
    def __init__(self, dim=16, depth=4, recompute=True):
        super().__init__()
        self.stem = nn.Linear(5, dim)
        self.blocks = nn.ModuleList(Block(dim) for _ in range(depth))
        self.head = nn.Linear(dim, 1)
        self.recompute = recompute

    def forward(self, x):
        h = self.stem(x)
        for block in self.blocks:
            if self.recompute and self.training:
                h = checkpoint(block, h, use_reentrant=False)
            else:
                h = block(h)
        return self.head(h).squeeze(-1)


torch.manual_seed(127)
model = Deep()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(10):
    model.train()
    x = torch.randn(32, 5)
    loss = nn.functional.huber_loss(model(x), x[:, 0] * x[:, 1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        model(x)
print(loss.item())
# /// correct diffusion-with-ema
# families = ["optimizer"]
# resembles = "an average of the weights is kept beside them"
# ///
import copy

import torch
import torch.nn as nn


class Denoiser(nn.Module):
    def __init__(self, steps, dim=24):
        super().__init__()
        self.time = nn.Embedding(steps, dim)
        self.inp, self.mid, self.out = nn.Linear(2, dim), nn.Linear(dim, dim), nn.Linear(dim, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        h = nn.functional.silu(self.inp(x) + self.time(t))
        return self.out(nn.functional.silu(self.mid(h)))


class EMA:
    def __init__(self, model, decay):
        self.shadow, self.decay = copy.deepcopy(model).eval().requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


torch.manual_seed(124)
T = 20
alpha_bar = torch.cumprod(1 - torch.linspace(1e-3, 0.2, T), dim=0)
model = Denoiser(T)
ema = EMA(model, 0.9)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(20):
    x0 = torch.randn(64, 2) * 0.1 + torch.randint(0, 2, (64, 1)) * 2 - 1
    t, noise = torch.randint(0, T, (64,)), torch.randn(64, 2)
    a = alpha_bar[t].unsqueeze(1)
    loss = (model(a.sqrt() * x0 + (1 - a).sqrt() * noise, t) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)
with torch.no_grad():
    print(loss.item(), ema.shadow(torch.randn(4, 2), torch.full((4,), T - 1)).norm().item())
# /// correct domain-adversarial-reversal
# families = ["function"]
# resembles = "a Function reverses the gradient on purpose"
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.label, self.domain = nn.Linear(24, 3), nn.Linear(24, 1)

    def forward(self, x, strength=1.0):
        h = self.features(x)
        return self.label(h), self.domain(Reverse.apply(h, strength)).squeeze(1)


torch.manual_seed(110)
source, target = torch.randn(90, 6), torch.randn(90, 6) + 1
y = source[:, :3].argmax(1)
model = DANN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    strength = 2 / (1 + math.exp(-10 * epoch / 4)) - 1
    for rows in torch.randperm(90).split(30):
        logits, is_source = model(source[rows], strength)
        _, is_target = model(target[rows], strength)
        domain = torch.cat([is_source, is_target])
        truth = torch.cat([torch.ones(len(rows)), torch.zeros(len(rows))])
        loss = F.cross_entropy(logits, y[rows]) + F.binary_cross_entropy_with_logits(domain, truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct dqn-target-net
# families = ["graph-break"]
# resembles = "the target net is used under no_grad"
# ///
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
torch.manual_seed(102)


class Chain:
    def __init__(self, n=6):
        self.n, self.s = n, 0

    def step(self, action):
        self.s = min(self.n - 1, self.s + 1) if action == 1 else max(0, self.s - 1)
        done = self.s == self.n - 1
        return F.one_hot(torch.tensor(self.s), self.n).float(), float(done), done

    def reset(self):
        self.s = 0
        return F.one_hot(torch.tensor(0), self.n).float()


env, memory = Chain(), deque(maxlen=200)
online = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters(), lr=5e-3)
state = env.reset()
for t in range(70):
    action = random.randrange(2)
    following, reward, done = env.step(action)
    memory.append((state, action, reward, following, float(done)))
    state = env.reset() if done else following
    if len(memory) < 50:
        continue
    s, a, r, s2, d = zip(*random.sample(list(memory), 16))
    q = online(torch.stack(s)).gather(1, torch.tensor(a).unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        best = online(torch.stack(s2)).argmax(1, keepdim=True)
        bootstrap = target(torch.stack(s2)).gather(1, best).squeeze(1)
        goal = torch.tensor(r) + 0.9 * (1 - torch.tensor(d)) * bootstrap
    loss = F.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    optimizer.step()
    if t % 10 == 0:
        target.load_state_dict(online.state_dict())
print(loss.item())
# /// correct equilibrium-layer
# families = ["graph-break"]
# resembles = "the fixed point is found without a graph"
# ///
import torch
import torch.nn as nn


class Equilibrium(nn.Module):
    def __init__(self, dim, iterations=15):
        super().__init__()
        self.recur, self.inject, self.iterations = nn.Linear(dim, dim), nn.Linear(dim, dim), iterations
        nn.init.orthogonal_(self.recur.weight, gain=0.5)

    def cell(self, z, x):
        return torch.tanh(self.recur(z) + self.inject(x))

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(self.iterations):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if self.training:
            z0 = z.detach().requires_grad_()
            f0 = self.cell(z0, x.detach())

            def implicit(grad):
                g = grad
                for _ in range(10):
                    g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return g

            z.register_hook(implicit)
        return z


torch.manual_seed(138)
model = nn.Sequential(nn.Linear(4, 10), Equilibrium(10), nn.Linear(10, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x = torch.randn(50, 4)
y = x.prod(dim=1, keepdim=True)
for step in range(12):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct feature-distillation-frozen-teacher
# families = ["flags"]
# resembles = "the teacher is frozen"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.fc = nn.Linear(width, 4)

    def forward(self, x):
        h = self.stem(x).mean(dim=(2, 3))
        return self.fc(h), h


torch.manual_seed(111)
teacher, student = Net(16).eval(), Net(4)
for p in teacher.parameters():
    p.requires_grad_(False)
bridge = nn.Linear(4, 16)
optimizer = torch.optim.Adam([*student.parameters(), *bridge.parameters()], lr=5e-3)
images = torch.rand(48, 1, 8, 8)
T = 2.0
for epoch in range(3):
    student.train()
    for x in images.split(12):
        with torch.no_grad():
            t_logits, t_feat = teacher(x)
            hard = t_logits.argmax(1)
        s_logits, s_feat = student(x)
        kd = F.kl_div(F.log_softmax(s_logits / T, 1), F.log_softmax(t_logits / T, 1), reduction="batchmean", log_target=True) * T ** 2
        loss = kd + 0.3 * F.cross_entropy(s_logits, hard) + F.mse_loss(bridge(s_feat), t_feat)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
# /// correct frozen-backbone-eval-norm
# families = ["mode"]
# resembles = "a frozen backbone stays in eval mode"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class FineTune(nn.Module):
    def __init__(self, backbone, width, classes):
        super().__init__()
        self.backbone = backbone.requires_grad_(False)
        self.head = nn.Linear(width, classes)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


torch.manual_seed(113)
backbone = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten())
model = FineTune(backbone, 8, 3)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1, momentum=0.9, nesterov=True)
x, y = torch.randn(45, 2, 12), torch.randint(0, 3, (45,))
for epoch in range(3):
    model.train()
    for xb, yb in zip(x.split(15), y.split(15)):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, (model(x).argmax(1) == y).float().mean().item())
# /// correct gan-two-backwards
# families = ["accumulation"]
# resembles = "two losses are walked back before one step"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(100)
G = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
D = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))


def adversarial(logits, real):
    target = torch.ones_like(logits) if real else torch.zeros_like(logits)
    return F.binary_cross_entropy_with_logits(logits, target)


for step in range(12):
    real = torch.randn(24, 2) * torch.tensor([0.5, 2.0])
    fake = G(torch.randn(24, 4))

    opt_d.zero_grad()
    adversarial(D(real), True).backward()
    adversarial(D(fake.detach()), False).backward()
    opt_d.step()

    for p in D.parameters():
        p.requires_grad_(False)
    opt_g.zero_grad()
    loss_g = adversarial(D(fake), True)
    loss_g.backward()
    opt_g.step()
    for p in D.parameters():
        p.requires_grad_(True)
    if step % 4 == 0:
        print(step, loss_g.item())
# /// correct gnn-masked-nodes
# families = ["loss"]
# resembles = "the loss takes the nodes of the mask alone"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SageLayer(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.own, self.neighbour = nn.Linear(n_in, n_out), nn.Linear(n_in, n_out, bias=False)

    def forward(self, x, edges):
        src, dst = edges
        summed = torch.zeros_like(x).index_add_(0, dst, x[src])
        degree = torch.zeros(len(x)).index_add_(0, dst, torch.ones(len(dst))).clamp_(min=1)
        return self.own(x) + self.neighbour(summed / degree.unsqueeze(1))


class Sage(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.layers = nn.ModuleList(SageLayer(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = F.dropout(F.relu(layer(x, edges), inplace=True), 0.2, training=self.training)
        return self.layers[-1](x, edges)


torch.manual_seed(122)
n = 80
y = torch.arange(n) % 4
x = F.one_hot(y, 6).float() + torch.randn(n, 6)
edges = torch.randint(0, n, (2, 400))
edges = edges[:, (y[edges[0]] == y[edges[1]]) | (torch.rand(400) < 0.2)]
train = torch.rand(n) < 0.5
model = Sage([6, 16, 4])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
for epoch in range(15):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x, edges)[train], y[train])
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print(loss.item(), (model(x, edges).argmax(1) == y)[~train].float().mean().item())
# /// correct grad-cam-retain
# families = ["leaf"]
# resembles = "an activation retains its gradient"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.fc = nn.Linear(8, 2)

    def forward(self, x, keep=False):
        maps = self.conv(x)
        if keep:
            maps.retain_grad()
        return self.fc(F.relu(maps).mean(dim=(2, 3))), maps


def grad_cam(model, image):
    model.eval()
    logits, maps = model(image, keep=True)
    model.zero_grad()
    logits[:, logits.argmax(1)].sum().backward()
    weight = maps.grad.mean(dim=(2, 3), keepdim=True)
    cam = F.relu((weight * maps).sum(1)).detach()
    model.zero_grad()
    return cam / (cam.max() + 1e-8)


torch.manual_seed(134)
model = ConvNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    model.train()
    x = torch.rand(16, 1, 8, 8)
    y = (x[:, 0, :4].mean((1, 2)) > x[:, 0, 4:].mean((1, 2))).long()
    loss = F.cross_entropy(model(x)[0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    cam = grad_cam(model, x[:1])
print(loss.item(), cam.shape)
# /// correct gradual-unfreeze-groups
# families = ["optimizer"]
# resembles = "groups are added as layers thaw"
# ///
import torch
import torch.nn as nn


class Unfreezer:
    def __init__(self, optimizer, stages, lr, decay=0.5):
        self.optimizer, self.stages, self.lr, self.decay = optimizer, list(stages), lr, decay

    def next_stage(self):
        if self.stages:
            module = self.stages.pop()
            module.requires_grad_(True)
            self.optimizer.add_param_group({"params": module.parameters(), "lr": self.lr})
            self.lr *= self.decay


torch.manual_seed(114)
stages = [nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 16), nn.ReLU())]
head = nn.Linear(16, 2)
model = nn.Sequential(*stages, head)
for stage in stages:
    stage.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)
unfreezer = Unfreezer(optimizer, stages, lr=5e-3)
x = torch.randn(64, 8)
y = (x[:, 0].abs() > x[:, 1].abs()).long()
for epoch in range(4):
    if epoch in (1, 2):
        unfreezer.next_stage()
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, len(optimizer.param_groups), loss.item())
# /// correct hard-gumbel-selection
# families = ["graph-break"]
# resembles = "hard choices pass the soft gradient"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class FeatureSelector(nn.Module):
    def __init__(self, n_in, n_keep):
        super().__init__()
        self.logits = nn.Parameter(0.01 * torch.randn(n_keep, n_in))
        self.net = nn.Sequential(nn.Linear(n_keep, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x, tau):
        if self.training:
            choice = F.gumbel_softmax(self.logits, tau=tau, hard=True, dim=-1)
        else:
            choice = F.one_hot(self.logits.argmax(-1), x.shape[1]).to(x)
        return self.net(x @ choice.T).squeeze(1)


torch.manual_seed(108)
x = torch.randn(200, 8)
y = x[:, 2] - 2 * x[:, 5]
model = FeatureSelector(8, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
tau = 2.0
for epoch in range(5):
    model.train()
    for rows in torch.randperm(200).split(50):
        loss = F.mse_loss(model(x[rows], tau), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tau = max(0.5, tau * 0.8)
    model.eval()
    with torch.no_grad():
        print(epoch, F.mse_loss(model(x, tau), y).item(), model.logits.argmax(-1).tolist())
# /// correct heat-equation-pinn
# families = ["higher-order"]
# resembles = "second derivatives by create_graph"
# ///
import torch
import torch.nn as nn


class HeatNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))

    def forward(self, x, t):
        return self.body(torch.cat([x, t], dim=1))


def gradient(y, *xs):
    return torch.autograd.grad(y, xs, torch.ones_like(y), create_graph=True)


torch.manual_seed(120)
model = HeatNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x0 = torch.linspace(0, 1, 20).unsqueeze(1)
for step in range(15):
    x = torch.rand(40, 1, requires_grad=True)
    t = torch.rand(40, 1, requires_grad=True)
    u = model(x, t)
    u_x, u_t = gradient(u, x, t)
    (u_xx,) = gradient(u_x, x)
    physics = (u_t - model.log_alpha.exp() * u_xx).square().mean()
    initial = (model(x0, torch.zeros_like(x0)) - torch.sin(3.1416 * x0)).square().mean()
    loss = physics + 5 * initial
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(physics.item(), initial.item(), model.log_alpha.exp().item())
# /// correct hook-handle-removed
# families = ["hook"]
# resembles = "the hook is removed after use"
# ///
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def masked_gradients(weight, keep):
    handle = weight.register_hook(lambda grad: grad * keep)
    try:
        yield
    finally:
        handle.remove()


torch.manual_seed(128)
old = F.normalize(torch.randn(6, 8), dim=1)
table = nn.Embedding(10, 8)
with torch.no_grad():
    table.weight[:6] = old
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.2)
keep = torch.zeros(10, 1)
keep[6:] = 1
for epoch in range(4):
    with masked_gradients(table.weight, keep):
        for _ in range(4):
            words = torch.randint(0, 10, (20, 4))
            loss = F.cross_entropy(head(table(words).mean(1)), words.sum(1) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(epoch, loss.item(), torch.equal(table.weight[:6], old))
# /// correct image-optimized-by-features
# families = ["leaf"]
# resembles = "the input is what is optimised"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(139)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU())
features.eval().requires_grad_(False)
TAPS = {"style": 1, "content": 4}


def activations(image):
    out, h = {}, image
    for i, layer in enumerate(features):
        h = layer(h)
        for name, at in TAPS.items():
            if i == at:
                out[name] = h
    return out


def gram(h):
    f = h.flatten(2)
    return f @ f.transpose(1, 2) / f.shape[-1]


content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
want_content = activations(content)["content"]
want_style = gram(activations(style)["style"])
image = nn.Parameter(content.clone())
optimizer = torch.optim.Adam([image], lr=0.02)
for step in range(15):
    got = activations(image)
    variation = (image[..., 1:] - image[..., :-1]).abs().mean()
    loss = F.mse_loss(got["content"], want_content) + 50 * F.mse_loss(gram(got["style"]), want_style) + 0.1 * variation
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
print(loss.item())
# /// correct in-place-that-is-fine
# families = ["in-place"]
# resembles = "what is overwritten is not saved"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class BasicBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += x
        return self.relu(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.block, self.fc = nn.Conv2d(1, 6, 3, padding=1), BasicBlock(6), nn.Linear(6, 2)

    def forward(self, x):
        h = self.block(self.stem(x))
        pooled = torch.empty(len(x), 6)
        pooled[:, :3] = h[:, :3].amax(dim=(2, 3))
        pooled[:, 3:] = h[:, 3:].mean(dim=(2, 3))
        return self.fc(pooled.mul_(0.5))


torch.manual_seed(129)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(8):
    x = torch.rand(12, 1, 8, 8)
    y = (x.mean(dim=(1, 2, 3)) > 0.5).long()
    x[torch.rand_like(x) < 0.1] = 0.0
    x.sub_(0.5).div_(0.3)
    loss = F.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct lbfgs-closure
# families = ["accumulation"]
# resembles = "the closure clears and walks back"
# ///
import torch

torch.manual_seed(130)
t = torch.linspace(0, 4, 50)
data = 2.0 * torch.exp(-0.7 * t) * torch.cos(3 * t) + 0.02 * torch.randn(50)
params = {name: torch.tensor(v, requires_grad=True) for name, v in {"a": 1.0, "k": 0.3, "w": 2.8}.items()}


def model(t):
    return params["a"] * torch.exp(-params["k"] * t) * torch.cos(params["w"] * t)


optimizer = torch.optim.LBFGS(params.values(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
evaluations = 0


def closure():
    global evaluations
    evaluations += 1
    optimizer.zero_grad()
    loss = (model(t) - data).square().mean()
    loss.backward()
    return loss


for outer in range(6):
    loss = optimizer.step(closure)
    print(outer, loss.item())
print({k: round(v.item(), 3) for k, v in params.items()}, evaluations)
# /// correct lora-zero-up-projection
# families = ["scale"]
# resembles = "one factor starts at zero"
# ///
import math

import torch
import torch.nn as nn


class LoRA(nn.Module):
    def __init__(self, base, r=3, alpha=6, dropout=0.05):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale, self.drop = alpha / r, nn.Dropout(dropout)

    def forward(self, x):
        return self.base(x) + self.scale * (self.drop(x) @ self.A.T) @ self.B.T

    @torch.no_grad()
    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        layer.bias.copy_(self.base.bias)
        return layer


torch.manual_seed(112)
body = nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))
for i in (0, 2, 4):
    body[i] = LoRA(body[i])
trainable = [p for p in body.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=1e-2)
x, y = torch.randn(60, 7), torch.randint(0, 3, (60,))
body.train()
for step in range(12):
    loss = nn.functional.cross_entropy(body(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
body.eval()
plain = nn.Sequential(*(m.merged() if isinstance(m, LoRA) else m for m in body))
print(loss.item(), (plain(x) - body(x)).abs().max().item())
# /// correct maml-functional
# families = ["higher-order"]
# resembles = "the inner step keeps its graph"
# ///
import torch
import torch.nn as nn
from torch.func import functional_call


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
        self.log_lr = nn.Parameter(torch.tensor(-3.0))

    def adapt(self, x, y, steps):
        fast = dict(self.net.named_parameters())
        for _ in range(steps):
            loss = (functional_call(self.net, fast, (x,)) - y).square().mean()
            grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
            fast = {n: p - self.log_lr.exp() * g for (n, p), g in zip(fast.items(), grads)}
        return fast

    def query_loss(self, task):
        (xs, ys), (xq, yq) = task
        fast = self.adapt(xs, ys, steps=2)
        return (functional_call(self.net, fast, (xq,)) - yq).square().mean()


def task():
    a, b = torch.rand(2) * 2
    x = torch.randn(16, 1)
    y = a * torch.sin(2 * x + b)
    return (x[:8], y[:8]), (x[8:], y[8:])


torch.manual_seed(118)
learner = Learner()
outer = torch.optim.Adam(learner.parameters(), lr=3e-3)
for it in range(8):
    outer.zero_grad()
    loss = torch.stack([learner.query_loss(task()) for _ in range(4)]).mean()
    loss.backward()
    outer.step()
    print(it, loss.item(), learner.log_lr.exp().item())
# /// correct moco-queue
# families = ["retention"]
# resembles = "keys without a graph stay in a queue"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class MoCo(nn.Module):
    def __init__(self, dim=6, size=60, m=0.9, tau=0.2):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, dim))
        self.k = copy.deepcopy(self.q).requires_grad_(False)
        self.register_buffer("queue", F.normalize(torch.randn(size, dim), dim=1))
        self.ptr, self.m, self.tau = 0, m, tau

    @torch.no_grad()
    def key(self, x):
        for slow, fast in zip(self.k.parameters(), self.q.parameters()):
            slow.data.mul_(self.m).add_(fast.data, alpha=1 - self.m)
        return F.normalize(self.k(x), dim=1)

    @torch.no_grad()
    def enqueue(self, keys):
        self.queue[self.ptr:self.ptr + len(keys)] = keys
        self.ptr = (self.ptr + len(keys)) % len(self.queue)

    def forward(self, a, b):
        query, key = F.normalize(self.q(a), dim=1), self.key(b)
        positive = (query * key).sum(1, keepdim=True)
        negative = query @ self.queue.clone().T
        logits = torch.cat([positive, negative], dim=1) / self.tau
        self.enqueue(key)
        return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))


torch.manual_seed(136)
model = MoCo()
optimizer = torch.optim.SGD(model.q.parameters(), lr=0.1, momentum=0.9)
data = torch.randn(80, 8)
for step in range(12):
    x = data[torch.randperm(80)[:20]]
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct ppo-clipped-ratio
# families = ["graph-break"]
# resembles = "old log-probabilities are constants"
# ///
import torch
import torch.nn as nn
from torch.distributions import Normal

torch.manual_seed(104)


class GaussianPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, obs):
        return Normal(self.mean(obs), self.log_std.exp())


@torch.no_grad()
def collect(policy, n):
    obs = torch.randn(n, 2)
    dist = policy(obs)
    act = dist.sample()
    reward = -(act - obs.sum(1, keepdim=True)).square().squeeze(1)
    return {"obs": obs, "act": act, "logp": dist.log_prob(act).sum(1), "adv": (reward - reward.mean()) / (reward.std() + 1e-8)}


policy = GaussianPolicy()
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-3)
for iteration in range(3):
    batch = collect(policy, 64)
    for epoch in range(3):
        for idx in torch.randperm(64).split(32):
            logp = policy(batch["obs"][idx]).log_prob(batch["act"][idx]).sum(1)
            ratio = (logp - batch["logp"][idx]).exp()
            clipped = ratio.clamp(0.8, 1.2)
            adv = batch["adv"][idx]
            loss = -torch.min(ratio * adv, clipped * adv).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        kl = (batch["logp"] - policy(batch["obs"]).log_prob(batch["act"]).sum(1)).mean()
    print(iteration, loss.item(), kl.item())
# /// correct reptile-deepcopy
# families = ["higher-order"]
# resembles = "weights move toward those of a trained copy"
# ///
import copy

import torch
import torch.nn as nn


def sample_task():
    slope, shift = torch.randn(2)
    x = torch.rand(20, 1) * 4 - 2
    return x, slope * x.abs() + shift


def inner_training(model, x, y, steps=4, lr=0.02):
    learner = copy.deepcopy(model)
    optimizer = torch.optim.SGD(learner.parameters(), lr=lr)
    for _ in range(steps):
        loss = (learner(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return learner, loss.item()


torch.manual_seed(119)
meta = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
outer = torch.optim.SGD(meta.parameters(), lr=1.0)
for iteration in range(6):
    outer.zero_grad()
    results = [inner_training(meta, *sample_task()) for _ in range(3)]
    for learner, _ in results:
        for p, q in zip(meta.parameters(), learner.parameters()):
            step = 0.2 * (p.detach() - q.detach()) / len(results)
            p.grad = step if p.grad is None else p.grad + step
    outer.step()
    print(iteration, sum(loss for _, loss in results) / len(results))
# /// correct shared-trunk-two-backwards
# families = ["retention"]
# resembles = "retain_graph is needed"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(117)
trunk = nn.Sequential(nn.Linear(9, 24), nn.ReLU())
depth, normal = nn.Linear(24, 1), nn.Linear(24, 3)
parameters = [p for m in (trunk, depth, normal) for p in m.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
shared = list(trunk.parameters())


def flat(grads):
    return torch.cat([g.flatten() for g in grads])


x = torch.randn(64, 9)
targets = {"depth": x[:, :1].abs(), "normal": F.normalize(x[:, 1:4], dim=1)}
for step in range(15):
    h = trunk(x)
    losses = {
        "depth": F.l1_loss(depth(h), targets["depth"]),
        "normal": (1 - F.cosine_similarity(normal(h), targets["normal"])).mean(),
    }
    norms = {name: flat(torch.autograd.grad(loss, shared, retain_graph=True)).norm() for name, loss in losses.items()}
    mean = sum(norms.values()) / len(norms)
    weights = {name: (mean / (norm + 1e-8)).item() for name, norm in norms.items()}
    optimizer.zero_grad()
    losses["depth"].mul(weights["depth"]).backward(retain_graph=True)
    losses["normal"].mul(weights["normal"]).backward()
    optimizer.step()
print({k: v.item() for k, v in losses.items()}, weights)
# /// correct sharpness-aware
# families = ["in-place"]
# resembles = "weights are moved and brought back"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SAM:
    def __init__(self, parameters, base, rho=0.05, **kwargs):
        self.parameters = list(parameters)
        self.base = base(self.parameters, **kwargs)
        self.rho, self.moved = rho, []

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm() + 1e-12
        self.moved = [self.rho * p.grad / norm for p in self.parameters]
        torch._foreach_add_(self.parameters, self.moved)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        torch._foreach_sub_(self.parameters, self.moved)
        self.base.step()
        self.base.zero_grad()


torch.manual_seed(137)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
x = torch.randn(60, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
for epoch in range(3):
    for rows in torch.randperm(60).split(20):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.ascend()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.descend()
    print(epoch, loss.item())
# /// correct simsiam-stop-gradient
# families = ["graph-break"]
# resembles = "one branch is detached"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def negative_cosine(p, z):
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


class SimSiam(nn.Module):
    def __init__(self, n_in=12, dim=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, dim), nn.BatchNorm1d(dim, affine=False))
        self.predictor = nn.Sequential(nn.Linear(dim, 4), nn.ReLU(), nn.Linear(4, dim))

    def forward(self, x1, x2):
        z1, z2 = self.encoder(x1), self.encoder(x2)
        return {"p": (self.predictor(z1), self.predictor(z2)), "z": (z1, z2)}


torch.manual_seed(106)
model = SimSiam()
optimizer = torch.optim.SGD(
    [{"params": model.encoder.parameters()}, {"params": model.predictor.parameters(), "weight_decay": 0.0}],
    lr=0.05, momentum=0.9, weight_decay=1e-4,
)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
samples = torch.randn(80, 12)
for epoch in range(4):
    for rows in torch.randperm(80).split(20):
        x = samples[rows]
        out = model(x * (torch.rand_like(x) > 0.2), x + 0.1 * torch.randn_like(x))
        (p1, p2), (z1, z2) = out["p"], out["z"]
        loss = 0.5 * (negative_cosine(p1, z2) + negative_cosine(p2, z1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(epoch, loss.item(), z1.detach().std(0).mean().item())
# /// correct soft-actor-critic-step
# families = ["optimizer"]
# resembles = "three optimizers with losses of their own"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, s):
        mean, log_std = self.net(s).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-4, 1).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        return a, (dist.log_prob(u) - torch.log(1 - a.square() + 1e-6)).sum(-1)


torch.manual_seed(131)
actor = Actor()
critic = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 1))
critic_target = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros((), requires_grad=True)
opts = {
    "actor": torch.optim.Adam(actor.parameters(), 1e-3),
    "critic": torch.optim.Adam(critic.parameters(), 1e-3),
    "alpha": torch.optim.Adam([log_alpha], 1e-2),
}


def q(net, s, a):
    return net(torch.cat([s, a], -1)).squeeze(-1)


def update(name, loss):
    opts[name].zero_grad()
    loss.backward()
    opts[name].step()


for step in range(10):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r, s2 = -(a.squeeze(1) - s[:, 0].tanh()).abs(), torch.randn(32, 3)
    with torch.no_grad():
        a2, logp2 = actor(s2)
        goal = r + 0.9 * (q(critic_target, s2, a2) - log_alpha.exp() * logp2)
    update("critic", F.mse_loss(q(critic, s, a), goal))
    critic.requires_grad_(False)
    new_a, logp = actor(s)
    update("actor", (log_alpha.exp().detach() * logp - q(critic, s, new_a)).mean())
    critic.requires_grad_(True)
    update("alpha", -(log_alpha * (logp.detach() - 1.0)).mean())
    with torch.no_grad():
        for slow, fast in zip(critic_target.parameters(), critic.parameters()):
            slow.lerp_(fast, 0.05)
print(log_alpha.item())
# /// correct switch-layer-balance-loss
# families = ["graph-break"]
# resembles = "counts of choices are constants"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.router = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim)) for _ in range(experts))

    def forward(self, x):
        probs = self.router(x).softmax(dim=-1)
        gate, index = probs.max(dim=-1)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            rows = (index == e).nonzero().squeeze(1)
            if len(rows):
                out[rows] = gate[rows, None] * expert(x[rows])
        share = F.one_hot(index, len(self.experts)).float().mean(0)
        balance = len(self.experts) * (share * probs.mean(0)).sum()
        return x + out, balance


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.moe, self.out = nn.Linear(6, 12), Switch(12, 4), nn.Linear(12, 3)

    def forward(self, x):
        h, aux = self.moe(torch.tanh(self.inp(x)))
        return self.out(h), aux


torch.manual_seed(125)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.randn(120, 6)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for rows in torch.randperm(120).split(40):
        logits, aux = model(x[rows])
        loss = F.cross_entropy(logits, y[rows]) + 0.01 * aux
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), aux.item())
# /// correct tied-language-model
# families = ["leaf"]
# resembles = "embedding and output share a weight"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalLM(nn.Module):
    def __init__(self, vocab=20, dim=16, context=10):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(dim, 2, 32, 0.0, batch_first=True, norm_first=True) for _ in range(2))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.02)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))

    def forward(self, ids, labels=None):
        t = ids.shape[1]
        h = self.tok(ids) + self.pos(torch.arange(t))
        for block in self.blocks:
            h = block(h, src_mask=self.mask[:t, :t])
        logits = self.lm_head(self.norm(h))
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


torch.manual_seed(123)
model = CausalLM()
decay = [p for p in model.parameters() if p.dim() > 1]
no_decay = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3)
for step in range(12):
    ids = (torch.randint(0, 20, (8, 1)) + torch.arange(10)) % 20
    labels = ids.clone()
    labels[:, :3] = -100
    loss = model(ids, labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(loss.item())
# /// correct token-count-accumulation
# families = ["accumulation"]
# resembles = "sums are divided by the number of tokens"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD = 0


class TinyLM(nn.Module):
    def __init__(self, vocab=15, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab, bias=False)

    def forward(self, ids):
        return self.head(self.gru(self.embed(ids))[0])


def ragged(n, longest):
    ids = torch.randint(1, 15, (n, longest))
    for row, keep in zip(ids, torch.randint(3, longest + 1, (n,))):
        row[keep:] = PAD
    return ids


torch.manual_seed(116)
model = TinyLM()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for update in range(6):
    micro = [ragged(4, n) for n in (6, 9, 12)]
    tokens = sum(int((ids[:, 1:] != PAD).sum()) for ids in micro)
    total = 0.0
    for ids in micro:
        logits = model(ids[:, :-1])
        summed = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], ignore_index=PAD, reduction="sum")
        (summed / tokens).backward()
        total += summed.item()
    optimizer.step()
    optimizer.zero_grad()
    print(update, total / tokens)
# /// correct truncated-bptt-detach
# families = ["retention"]
# resembles = "the state is detached between chunks"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def detach(state):
    return tuple(detach(s) for s in state) if isinstance(state, tuple) else state.detach()


class SignalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 12, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(12, 1)

    def forward(self, x, state):
        h, state = self.lstm(x, state)
        return self.out(h), state


torch.manual_seed(121)
signal = torch.sin(torch.arange(201) * 0.3).repeat(4, 1) + 0.1 * torch.randn(4, 201)
model = SignalModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    state = None
    for start in range(0, 200, 25):
        x = signal[:, start:start + 25].unsqueeze(-1)
        y = signal[:, start + 1:start + 26].unsqueeze(-1)
        if state is not None:
            state = detach(state)
        prediction, state = model(x, state)
        loss = F.mse_loss(prediction, y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(epoch, loss.item())
# /// correct unrolled-loss-list
# families = ["retention"]
# resembles = "losses are collected for one backward"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Refiner(nn.Module):
    """Estimates are refined over some iterations; the estimate is detached before each."""

    def __init__(self, iterations=4):
        super().__init__()
        self.cell, self.delta, self.iterations = nn.GRUCell(6, 16), nn.Linear(16, 2), iterations

    def forward(self, observed):
        h = observed.new_zeros(len(observed), 16)
        estimate = observed.new_zeros(len(observed), 2)
        estimates = []
        for _ in range(self.iterations):
            estimate = estimate.detach()
            h = self.cell(torch.cat([observed, estimate], dim=1), h)
            estimate = estimate + self.delta(h)
            estimates.append(estimate)
        return estimates


torch.manual_seed(133)
model = Refiner()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
history = []
for step in range(15):
    observed = torch.randn(32, 4)
    truth = torch.stack([observed[:, 0] * observed[:, 1], observed[:, 2:].sum(1)], dim=1)
    estimates = model(observed)
    losses = [0.8 ** (len(estimates) - 1 - i) * F.l1_loss(e, truth) for i, e in enumerate(estimates)]
    optimizer.zero_grad()
    sum(losses).backward()
    optimizer.step()
    history.append([loss.item() for loss in losses])
print(history[0], history[-1])
# /// correct vq-vae-codebook
# families = ["graph-break"]
# resembles = "codes pass their gradient straight through"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantizer(nn.Module):
    def __init__(self, codes, dim, beta=0.25):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        nn.init.uniform_(self.codebook.weight, -0.5, 0.5)
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z, self.codebook.weight).argmin(dim=-1)
        q = self.codebook(index)
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


class VQVAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 4))
        self.quantizer = Quantizer(12, 4)
        self.decoder = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 9))

    def forward(self, x):
        q, vq_loss, index = self.quantizer(self.encoder(x))
        return self.decoder(q), vq_loss, index


torch.manual_seed(107)
model = VQVAE()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
x = torch.randn(4, 9).repeat(20, 1) + 0.1 * torch.randn(80, 9)
for epoch in range(5):
    used = set()
    for batch in x[torch.randperm(80)].split(20):
        recon, vq_loss, index = model(batch)
        loss = F.mse_loss(recon, batch) + vq_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used.update(index.tolist())
    print(epoch, loss.item(), len(used))
# /// correct warmup-then-plateau
# families = ["optimizer"]
# resembles = "two schedules take turns"
# ///
import torch
import torch.nn as nn

torch.manual_seed(132)
x = torch.randn(100, 4)
y = torch.sin(x.sum(1, keepdim=True))
train, held = slice(0, 80), slice(80, 100)
model = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
per_batch = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=8)
per_epoch = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
seen = 0
for epoch in range(6):
    model.train()
    for rows in torch.randperm(80).split(20):
        optimizer.zero_grad()
        loss = (model(x[train][rows]) - y[train][rows]).square().mean()
        loss.backward()
        optimizer.step()
        if seen < 8:
            per_batch.step()
        seen += 1
    model.eval()
    with torch.no_grad():
        val = (model(x[held]) - y[held]).square().mean()
    if seen >= 8:
        per_epoch.step(val)
    print(epoch, loss.item(), val.item(), optimizer.param_groups[0]["lr"])
# /// correct wgan-gradient-penalty
# families = ["higher-order"]
# resembles = "the penalty keeps its graph"
# ///
import torch
import torch.nn as nn


class Critic(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(1)


def slope_penalty(critic, a, b):
    t = torch.rand(len(a), 1)
    point = torch.lerp(a, b, t).detach().requires_grad_()
    grad, = torch.autograd.grad(critic(point).sum(), point, create_graph=True)
    return (grad.norm(dim=1) - 1).pow(2).mean()


torch.manual_seed(101)
critic, gen = Critic(), nn.Sequential(nn.Linear(2, 24), nn.ReLU(), nn.Linear(24, 2))
c_opt = torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9))
g_opt = torch.optim.Adam(gen.parameters(), 1e-3, betas=(0.0, 0.9))
for it in range(4):
    for _ in range(3):
        real = torch.randn(32, 2) + 2
        fake = gen(torch.randn(32, 2)).detach()
        c_loss = critic(fake).mean() - critic(real).mean() + 10 * slope_penalty(critic, real, fake)
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    g_opt.zero_grad()
    g_loss = -critic(gen(torch.randn(32, 2))).mean()
    g_loss.backward()
    g_opt.step()
    print(it, c_loss.item(), g_loss.item())
