# /// correct a2c_parallel_environments
# ///
import torch
from torch import nn

torch.manual_seed(0)
N_ENV, T, GAMMA = 4, 5, 0.95


class VecEnv:
    def reset(self):
        self.s = torch.randn(N_ENV, 3)
        return self.s

    def step(self, a):
        reward = (a == (self.s[:, 0] > 0).long()).float()
        done = torch.rand(N_ENV) < 0.1
        self.s = torch.where(done[:, None], torch.randn(N_ENV, 3), 0.9 * self.s + 0.2 * torch.randn(N_ENV, 3))
        return self.s, reward, done.float()


actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optim = torch.optim.RMSprop([*actor.parameters(), *critic.parameters()], lr=7e-3, alpha=0.99, eps=1e-5)
envs = VecEnv()
obs = envs.reset()
for update in range(6):
    logps, values, rewards, masks, entropies = [], [], [], [], []
    for t in range(T):
        dist = torch.distributions.Categorical(logits=actor(obs))
        action = dist.sample()
        values.append(critic(obs).squeeze(-1))
        logps.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        obs, r, done = envs.step(action)
        rewards.append(r)
        masks.append(1 - done)
    with torch.no_grad():
        R = critic(obs).squeeze(-1)
    returns = []
    for r, m in zip(reversed(rewards), reversed(masks)):
        R = r + GAMMA * R * m
        returns.insert(0, R)
    returns, values, logps = torch.stack(returns), torch.stack(values), torch.stack(logps)
    advantage = returns - values
    policy_loss = -(logps * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], max_norm=0.5)
    optim.step()
    print(update, rewards[-1].mean().item(), value_loss.item())
# /// correct accumulate_with_partial_last_window
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(44, 7), torch.randint(0, 4, (44,))), batch_size=4, shuffle=True)
ACC = 4
n = len(loader)
rest = n % ACC
for epoch in range(2):
    optimizer.zero_grad()
    total = 0.0
    for i, (x, y) in enumerate(loader):
        window = rest if rest and i >= n - rest else ACC
        loss = F.cross_entropy(model(x), y)
        (loss / window).backward()
        total += loss.item()
        if (i + 1) % ACC == 0 or i + 1 == n:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, total / n)
# /// correct actor_critic_episode
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 12)
        self.pi, self.v = nn.Linear(12, 2), nn.Linear(12, 1)

    def forward(self, s):
        h = torch.tanh(self.body(s))
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


agent = Agent()
opt = torch.optim.Adam(agent.parameters(), lr=1e-2)
for episode in range(3):
    log_probs, values, rewards, entropies = [], [], [], []
    state = torch.zeros(3)
    for t in range(6):
        dist, value = agent(state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        values.append(value)
        entropies.append(dist.entropy())
        rewards.append(float(action) - 0.1 * t)
        state = state + 0.1 * torch.randn(3)
    returns, total = [], 0.0
    for r in reversed(rewards):
        total = r + 0.9 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    values = torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.stack(log_probs) * advantage).sum()
    value_loss = nn.functional.mse_loss(values, returns)
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(episode, sum(rewards), loss.item())
# /// correct adam_dense_and_sparse_adam_embeddings
# ///
import torch
from torch import nn

torch.manual_seed(0)


class NCF(nn.Module):
    def __init__(self, users, items, d=6):
        super().__init__()
        self.user = nn.Embedding(users, d, sparse=True)
        self.item = nn.Embedding(items, d, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(2 * d, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.user(u), self.item(i)], -1)).squeeze(-1)


model = NCF(20, 30)
sparse = torch.optim.SparseAdam([*model.user.parameters(), *model.item.parameters()], lr=1e-2)
dense = torch.optim.Adam(model.mlp.parameters(), lr=1e-3)
optimizers = [sparse, dense]
u, i = torch.randint(0, 20, (128,)), torch.randint(0, 30, (128,))
clicked = ((u + i) % 3 == 0).float()
for epoch in range(3):
    for idx in torch.randperm(128).split(32):
        loss = nn.functional.binary_cross_entropy_with_logits(model(u[idx], i[idx]), clicked[idx])
        for opt in optimizers:
            opt.zero_grad()
        loss.backward()
        for opt in optimizers:
            opt.step()
    print(epoch, loss.item())
# /// correct adapters_and_layernorm_tuning
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Adapter(nn.Module):
    def __init__(self, d, bottleneck=4):
        super().__init__()
        self.down, self.up = nn.Linear(d, bottleneck), nn.Linear(bottleneck, d)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x):
        return x + self.up(F.gelu(self.down(x)))


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.adapter = nn.Identity()

    def forward(self, x):
        return x + self.adapter(self.ff(self.norm(x)))


class Model(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.embed = nn.Embedding(30, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(2))
        self.classifier = nn.Linear(d, 2)

    def forward(self, ids):
        x = self.embed(ids)
        for b in self.blocks:
            x = b(x)
        return self.classifier(x.mean(1))


model = Model()
state = {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(state)
for b in model.blocks:
    b.adapter = Adapter(16)
for name, p in model.named_parameters():
    p.requires_grad = any(k in name for k in ("adapter", "norm", "classifier"))
optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 4))
ids = torch.randint(0, 30, (32, 6))
labels = (ids[:, 0] > 14).long()
for epoch in range(3):
    model.train()
    for i in range(0, 32, 8):
        logits = model(ids[i : i + 8])
        loss = F.cross_entropy(logits, labels[i : i + 8])
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    print(epoch, loss.item(), scheduler.get_last_lr()[0])
# /// correct alternating_gan_requires_grad_toggle
# ///
import torch
from torch import nn

torch.manual_seed(0)
G, D = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
og, od = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
bce = nn.functional.binary_cross_entropy_with_logits


def toggle(module, flag):
    for p in module.parameters():
        p.requires_grad_(flag)


for real in torch.randn(4, 10, 2) + 1:
    toggle(D, True)
    fake = G(torch.randn(10, 2))
    d = bce(D(real), torch.ones(10, 1)) + bce(D(fake.detach()), torch.zeros(10, 1))
    od.zero_grad()
    d.backward()
    od.step()
    toggle(D, False)
    g = bce(D(fake), torch.ones(10, 1))
    og.zero_grad()
    g.backward()
    og.step()
print(d.item(), g.item())
# /// correct amp_cpu_with_scaler
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
for x in torch.randn(6, 16, 8):
    y = x.pow(2).sum(1, keepdim=True)
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.mse_loss(net(x).float(), y)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    scaler.step(opt)
    scaler.update()
print(loss.item(), scaler.get_scale())
# /// correct anchor_box_detector_losses
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Detector(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU())
        self.cls, self.box, self.obj = nn.Conv2d(16, classes, 1), nn.Conv2d(16, 4, 1), nn.Conv2d(16, 1, 1)

    def forward(self, x):
        f = self.features(x)
        flat = lambda t: t.flatten(2).transpose(1, 2)
        return flat(self.cls(f)), flat(self.box(f)), flat(self.obj(f)).squeeze(-1)


def targets(n, cells):
    positive = torch.rand(n, cells) < 0.1
    positive[:, 0] = True
    return positive, torch.randint(0, 3, (n, cells)), torch.rand(n, cells, 4)


net = Detector()
opt = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
for step in range(6):
    x = torch.rand(4, 3, 16, 16)
    cls, box, obj = net(x)
    pos, label, gt = targets(4, 16)
    n_pos = pos.sum().clamp(min=1)
    loss_obj = F.binary_cross_entropy_with_logits(obj, pos.float(), reduction="none")
    hard = loss_obj.detach().masked_fill(pos, -1).flatten().topk(3 * int(n_pos)).indices
    keep = pos.flatten().clone()
    keep[hard] = True
    loss_obj = loss_obj.flatten()[keep].sum() / n_pos
    loss_cls = F.cross_entropy(cls[pos], label[pos], reduction="sum") / n_pos
    loss_box = F.smooth_l1_loss(box[pos].sigmoid(), gt[pos], beta=0.1, reduction="sum") / n_pos
    losses = {"obj": loss_obj, "cls": loss_cls, "box": 2.0 * loss_box}
    total = sum(losses.values())
    opt.zero_grad()
    total.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    opt.step()
    print(step, {k: round(v.item(), 3) for k, v in losses.items()})
# /// correct anil_only_head_adapts
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
head = nn.Linear(12, 3)
outer_opt = torch.optim.Adam(list(body.parameters()) + list(head.parameters()), lr=1e-3)


def draw(k):
    protos = torch.randn(3, 6)
    y = torch.arange(3).repeat(k)
    x = protos[y] + 0.3 * torch.randn(3 * k, 6)
    yq = torch.arange(3).repeat(4)
    return x, y, protos[yq] + 0.3 * torch.randn(12, 6), yq


for step in range(5):
    losses, correct = [], 0
    for _ in range(2):
        xs, ys, xq, yq = draw(2)
        w, b = head.weight, head.bias
        feats = body(xs)
        for _ in range(3):
            inner = F.cross_entropy(F.linear(feats, w, b), ys)
            gw, gb = torch.autograd.grad(inner, (w, b), create_graph=True)
            w, b = w - 0.1 * gw, b - 0.1 * gb
        logits = F.linear(body(xq), w, b)
        losses.append(F.cross_entropy(logits, yq))
        correct += (logits.argmax(-1) == yq).sum().item()
    loss = torch.stack(losses).mean()
    outer_opt.zero_grad()
    loss.backward()
    outer_opt.step()
    print(f"{step} {loss.item():.3f} acc {correct / 24:.2f}")
# /// correct arcface_margin_head
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ArcMargin(nn.Module):
    def __init__(self, d, n, s=16.0, m=0.2):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n, d))
        nn.init.xavier_uniform_(self.weight)
        self.s, self.cos_m, self.sin_m = s, math.cos(m), math.sin(m)
        self.th, self.mm = math.cos(math.pi - m), math.sin(math.pi - m) * m

    def forward(self, x, label):
        cosine = F.linear(F.normalize(x), F.normalize(self.weight))
        sine = torch.sqrt((1.0 - cosine.pow(2)).clamp(1e-6, 1))
        phi = cosine * self.cos_m - sine * self.sin_m
        phi = torch.where(cosine > self.th, phi, cosine - self.mm)
        one_hot = torch.zeros_like(cosine)
        one_hot.scatter_(1, label.view(-1, 1).long(), 1)
        return self.s * (one_hot * phi + (1.0 - one_hot) * cosine)


backbone, metric = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 8)), ArcMargin(8, 5)
opt = torch.optim.SGD([{"params": backbone.parameters()}, {"params": metric.parameters()}], lr=0.05, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)
X = torch.randn(80, 10)
Y = X[:, :5].argmax(1)
for epoch in range(4):
    for i in torch.randperm(80).split(20):
        out = metric(backbone(X[i]), Y[i])
        loss = F.cross_entropy(out, Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    print(epoch, loss.item(), (out.argmax(1) == Y[i]).float().mean().item())
# /// correct autoencoder_script
# ///
import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(20, 8), nn.ReLU(), nn.Linear(8, 3))
decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 20))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
history = []
for epoch in range(4):
    for x in torch.rand(3, 16, 20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(decoder(encoder(x)), x)
        loss.backward()
        optimizer.step()
        history.append(loss.item())
with torch.no_grad():
    codes = encoder(torch.rand(5, 20))
print(codes.mean().item(), sum(history) / len(history))
# /// correct barlow_twins_off_diagonal
# ///
import torch
from torch import nn

torch.manual_seed(0)


def off_diagonal(x):
    n, m = x.shape
    assert n == m
    return x.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten()


class BarlowTwins(nn.Module):
    def __init__(self, lambd=0.005):
        super().__init__()
        self.lambd = lambd
        self.backbone = nn.Sequential(nn.Linear(12, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(inplace=True))
        self.projector = nn.Linear(32, 16, bias=False)
        self.bn = nn.BatchNorm1d(16, affine=False)

    def forward(self, y1, y2):
        z1, z2 = self.projector(self.backbone(y1)), self.projector(self.backbone(y2))
        c = self.bn(z1).T @ self.bn(z2)
        c.div_(y1.shape[0])
        on_diag = torch.diagonal(c).add_(-1).pow_(2).sum()
        off_diag = off_diagonal(c).pow_(2).sum()
        return on_diag + self.lambd * off_diag


model = BarlowTwins()
weights = [p for p in model.parameters() if p.ndim > 1]
biases = [p for p in model.parameters() if p.ndim == 1]
opt = torch.optim.SGD([{"params": weights, "weight_decay": 1e-4}, {"params": biases, "weight_decay": 0.0}], lr=0.01, momentum=0.9)
warmup, total = 3, 10
for step in range(total):
    lr = 0.05 * (step + 1) / warmup if step < warmup else 0.05 * (1 - (step - warmup) / total)
    for g in opt.param_groups:
        g["lr"] = lr
    x = torch.randn(32, 12)
    loss = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, lr, loss.item())
# /// correct behaviour_cloning_then_reinforce
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
reference = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
expert_s = torch.randn(90, 4)
expert_a = expert_s[:, :3].argmax(1)

opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for epoch in range(3):
    for i in torch.randperm(90).split(30):
        loss = F.cross_entropy(policy(expert_s[i]), expert_a[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
print("cloned", loss.item())
reference.load_state_dict(policy.state_dict())
reference.requires_grad_(False)

opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
baseline = 0.0
for it in range(6):
    s = torch.randn(32, 4)
    logits = policy(s)
    dist = torch.distributions.Categorical(logits=logits)
    a = dist.sample()
    with torch.no_grad():
        ref = reference(s).log_softmax(-1)
        kl_pen = logits.log_softmax(-1).gather(1, a[:, None]) - ref.gather(1, a[:, None])
        reward = (a == s[:, 1:].argmax(1)).float() - 0.1 * kl_pen.squeeze(1)
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    loss = -((reward - baseline) * dist.log_prob(a)).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(it, reward.mean().item())
# /// correct bf16_autocast_with_disabled_scaler
# ///
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda" if False else "cpu"
use_amp = True
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)).to(device)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler(device, enabled=False)
X = torch.randn(64, 10)
Y = X[:, :1] * 2 - X[:, 1:2]
for epoch in range(3):
    for x, y in zip(X.split(16), Y.split(16)):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        opt.zero_grad(set_to_none=True)
        with torch.autocast(device_type=device, dtype=torch.bfloat16, enabled=use_amp):
            output = net(x)
            loss = nn.functional.mse_loss(output.float(), y)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
        scaler.step(opt)
        scaler.update()
    print(epoch, loss.item(), output.dtype, scaler.get_scale())
# /// correct bilevel_learning_rate
# ///
import torch

torch.manual_seed(0)
x, y = torch.randn(40, 3), torch.randn(40)
log_rate = torch.tensor(-3.0, requires_grad=True)
outer = torch.optim.Adam([log_rate], lr=0.1)
for trial in range(4):
    w = torch.zeros(3, requires_grad=True)
    for _ in range(4):
        inner = (x[:30] @ w - y[:30]).pow(2).mean()
        (g,) = torch.autograd.grad(inner, w, create_graph=True)
        w = w - log_rate.exp() * g
    held_out = (x[30:] @ w - y[30:]).pow(2).mean()
    outer.zero_grad()
    held_out.backward()
    outer.step()
    print(trial, held_out.item(), log_rate.item())
# /// correct bounded_replay_of_losses
# ///
from collections import deque

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
recent = deque(maxlen=3)
for i, x in enumerate(torch.randn(9, 6, 4), 1):
    recent.append((net(x) - 1).pow(2).mean())
    if i % 3 == 0:
        loss = torch.stack(list(recent)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        recent.clear()
        print(i, loss.item())
# /// correct byol_module_with_target_update
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class BYOL(nn.Module):
    def __init__(self, dim=12, hidden=24, proj=8):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(dim, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, proj))
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False
        self.predictor = nn.Sequential(nn.Linear(proj, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Linear(hidden, proj))

    @torch.no_grad()
    def update_target(self, tau):
        for o, t in zip(self.online.parameters(), self.target.parameters()):
            t.data = tau * t.data + (1 - tau) * o.data

    def loss(self, a, b):
        p = F.normalize(self.predictor(self.online(a)), dim=-1)
        with torch.no_grad():
            z = F.normalize(self.target(b), dim=-1)
        return 2 - 2 * (p * z).sum(-1)

    def forward(self, a, b):
        return (self.loss(a, b) + self.loss(b, a)).mean()


model = BYOL()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
steps = 10
for k in range(steps):
    x = torch.randn(32, 12)
    loss = model(x + 0.2 * torch.randn_like(x), x + 0.2 * torch.randn_like(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.update_target(1 - 0.01 * (1 + torch.cos(torch.tensor(3.14159 * k / steps)).item()) / 2)
    print(k, loss.item())
# /// correct byol_two_views
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
online = nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8))
predictor = nn.Linear(8, 8)
teacher = copy.deepcopy(online)
for p in teacher.parameters():
    p.requires_grad = False
opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


def regression(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


for x in torch.randn(5, 12, 10):
    one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        z1, z2 = teacher(one), teacher(two)
    loss = regression(predictor(online(one)), z2) + regression(predictor(online(two)), z1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), online.parameters()):
            old.mul_(0.99).add_(new, alpha=0.01)
print(loss.item())
# /// correct center_loss_with_own_sgd
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class CenterLoss(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(n, d))

    def forward(self, x, y):
        return (x - self.centers[y]).pow(2).sum(1).mean() / 2


features, classifier = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)), nn.Linear(2, 4)
center = CenterLoss(4, 2)
opt_model = torch.optim.SGD([*features.parameters(), *classifier.parameters()], lr=0.05, momentum=0.9)
opt_center = torch.optim.SGD(center.parameters(), lr=0.5)
weight = 0.1
X = torch.randn(64, 6)
Y = X[:, :4].argmax(1)
for epoch in range(4):
    for i in torch.randperm(64).split(16):
        f = features(X[i])
        xent, c = F.cross_entropy(classifier(f), Y[i]), center(f, Y[i])
        loss = xent + weight * c
        opt_model.zero_grad()
        opt_center.zero_grad()
        loss.backward()
        opt_model.step()
        for p in center.parameters():
            p.grad.data *= 1.0 / weight
        opt_center.step()
    print(epoch, xent.item(), c.item())
# /// correct checkpoint_save_and_resume
# ///
import os
import tempfile

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, start, end, path):
    g = torch.Generator().manual_seed(1)
    X = torch.randn(48, 4, generator=g)
    Y = (X[:, 0] > 0).long()
    for epoch in range(start, end):
        model.train()
        for x, y in zip(X.split(16), Y.split(16)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        torch.save(
            {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "loss": loss},
            path,
        )
        print(epoch, loss.item(), scheduler.get_last_lr())


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    train(*build(), 0, 3, path)
    model, optimizer, scheduler = build()
    ckpt = torch.load(path, weights_only=False)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    train(model, optimizer, scheduler, ckpt["epoch"], 6, path)
# /// correct checkpointed_bf16_transformer
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(40, 32)
        self.pos = nn.Parameter(torch.zeros(1, 12, 32))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.head = nn.Linear(32, 40, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        x = self.tok(ids) + self.pos[:, : ids.size(1)]
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False)
        return self.head(x)


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=5)
for step in range(5):
    ids = torch.randint(0, 40, (8, 12))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item(), norm.item())
# /// correct checkpointed_blocks
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Deep(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.out(x)


net = Deep(4, 8)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for x in torch.randn(4, 10, 8):
    opt.zero_grad()
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct checkpointed_encoder_with_dropout
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.net = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * d, d))

    def forward(self, x):
        return x + self.net(x)


class Encoder(nn.Module):
    def __init__(self, d=12, use_checkpoint=True):
        super().__init__()
        self.inp = nn.Linear(5, d)
        self.blocks = nn.ModuleList(Block(d) for _ in range(3))
        self.tail = nn.Sequential(Block(d), Block(d))
        self.out = nn.Linear(d, 2)
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            if self.use_checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        if self.training:
            x = checkpoint_sequential(self.tail, 2, x, use_reentrant=False)
        else:
            x = self.tail(x)
        return self.out(x)


model = Encoder()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
x, y = torch.randn(32, 5), torch.randint(0, 2, (32,))
for step in range(5):
    model.train()
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.eval()
    with torch.no_grad():
        print(step, loss.item(), nn.functional.cross_entropy(model(x), y).item())
# /// correct clip_contrastive_temperature
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(48, 16))
        self.text = nn.EmbeddingBag(50, 16)
        self.scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))

    def forward(self, image, text):
        a = F.normalize(self.image(image), dim=-1)
        b = F.normalize(self.text(text), dim=-1)
        return self.scale.exp() * a @ b.t()


model = Towers()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(6):
    logits = model(torch.randn(16, 3, 4, 4), torch.randint(0, 50, (16, 7)))
    labels = torch.arange(len(logits))
    loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        model.scale.clamp_(0, math.log(100))
print(loss.item())
# /// correct conditional_gan_one_generator_pass
# ///
import torch
from torch import nn

torch.manual_seed(0)
CLASSES, Z = 3, 5


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, CLASSES)
        self.net = nn.Sequential(nn.Linear(Z + CLASSES, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, z, y):
        return self.net(torch.cat((self.label(y), z), -1))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.label = nn.Embedding(CLASSES, CLASSES)
        self.net = nn.Sequential(nn.Linear(2 + CLASSES, 16), nn.LeakyReLU(0.2), nn.Dropout(0.4), nn.Linear(16, 1))

    def forward(self, x, y):
        return self.net(torch.cat((x, self.label(y)), -1))


generator, discriminator = Generator(), Discriminator()
criterion = nn.BCEWithLogitsLoss()
optimizer_G = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
centres = torch.tensor([[0.0, 2.0], [2.0, 0.0], [-2.0, -2.0]])
for epoch in range(6):
    labels = torch.randint(0, CLASSES, (24,))
    real = centres[labels] + 0.1 * torch.randn(24, 2)
    fake_labels = torch.randint(0, CLASSES, (24,))
    fake = generator(torch.randn(24, Z), fake_labels)

    discriminator.zero_grad()
    loss_real = criterion(discriminator(real, labels), torch.full((24, 1), 0.9))
    loss_real.backward()
    loss_fake = criterion(discriminator(fake.detach(), fake_labels), torch.zeros(24, 1))
    loss_fake.backward()
    optimizer_D.step()

    generator.zero_grad()
    loss_G = criterion(discriminator(fake, fake_labels), torch.ones(24, 1))
    loss_G.backward()
    optimizer_G.step()
    D_x, G_z = loss_real.item(), loss_fake.item()
    print("%d  D(x) %.3f D(G(z)) %.3f  G %.3f" % (epoch, D_x, G_z, loss_G.item()))
# /// correct config_trainer_with_ema_and_warmup
# ///
import copy
import io
import math
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class OptimConfig:
    lr: float = 3e-3
    weight_decay: float = 0.01
    warmup: int = 3
    clip: float = 1.0


@dataclass
class TrainConfig:
    width: int = 32
    epochs: int = 3
    batch: int = 16
    accumulate: int = 2
    ema: float = 0.9
    optim: OptimConfig = field(default_factory=OptimConfig)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width), nn.Dropout(0.1))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Linear(8, cfg.width)
        self.blocks = nn.ModuleList(Block(cfg.width) for _ in range(2))
        self.head = nn.Linear(cfg.width, 3)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = Net(cfg)
        self.shadow = copy.deepcopy(self.model).eval().requires_grad_(False)
        decay = [p for p in self.model.parameters() if p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": cfg.optim.weight_decay}, {"params": plain, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=cfg.optim.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._rate)
        self.best = math.inf
        self.kept = io.BytesIO()

    def _rate(self, step):
        if step < self.cfg.optim.warmup:
            return step / self.cfg.optim.warmup
        return 0.5 * (1 + math.cos(math.pi * min(1.0, step / 30)))

    @torch.no_grad()
    def _average(self):
        for ours, theirs in zip(self.shadow.parameters(), self.model.parameters()):
            ours.lerp_(theirs, 1 - self.cfg.ema)

    def _epoch(self, loader):
        self.model.train()
        running = 0.0
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.cross_entropy(self.model(x), y, label_smoothing=0.1) / self.cfg.accumulate
            loss.backward()
            running += loss.item()
            if (i + 1) % self.cfg.accumulate == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.optim.clip)
                self.optimizer.step()
                self.scheduler.step()
                self.optimizer.zero_grad(set_to_none=True)
                self._average()
        return running / len(loader)

    @torch.inference_mode()
    def _evaluate(self, loader):
        self.shadow.eval()
        losses = [nn.functional.cross_entropy(self.shadow(x), y, reduction="sum") for x, y in loader]
        return torch.stack(losses).sum().item() / len(loader.dataset)

    def fit(self, train, valid):
        for epoch in range(self.cfg.epochs):
            running, held_out = self._epoch(train), self._evaluate(valid)
            if held_out < self.best:
                self.best = held_out
                self.kept.seek(0)
                torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, self.kept)
            print(epoch, f"{running:.3f} {held_out:.3f}")
        self.kept.seek(0)
        self.model.load_state_dict(torch.load(self.kept)["model"])


torch.manual_seed(0)
x = torch.randn(128, 8)
y = x[:, :3].argmax(1)
cfg = TrainConfig()
loaders = [DataLoader(TensorDataset(x[a:b], y[a:b]), batch_size=cfg.batch, shuffle=a == 0) for a, b in ((0, 96), (96, 128))]
Trainer(cfg).fit(*loaders)
# /// correct ctc_speech_blank_zero
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Acoustic(nn.Module):
    def __init__(self, feats=6, hidden=16, vocab=5):
        super().__init__()
        self.conv = nn.Conv1d(feats, hidden, 3, stride=2, padding=1)
        self.rnn = nn.GRU(hidden, hidden, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, vocab)

    def forward(self, x):
        h = F.relu(self.conv(x.transpose(1, 2))).transpose(1, 2)
        h, _ = self.rnn(h)
        return F.log_softmax(self.fc(h), dim=-1)


net = Acoustic()
ctc = nn.CTCLoss(blank=0, zero_infinity=True)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for step in range(6):
    frames = torch.randn(4, 40, 6)
    in_len = torch.tensor([20, 18, 20, 15])
    tgt_len = torch.randint(2, 6, (4,))
    targets = torch.randint(1, 5, (4, 6))
    logp = net(frames).transpose(0, 1)
    loss = ctc(logp, targets, in_len, tgt_len)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5.0)
    opt.step()
    best = logp.detach().argmax(-1).T
    decoded = [[int(c) for c in torch.unique_consecutive(row) if c != 0] for row in best]
    print(step, loss.item(), decoded[0])
# /// correct curriculum_by_difficulty
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
X = torch.randn(120, 4)
margin = X.sum(1).abs()
Y = (X.sum(1) > 0).long()
order = margin.argsort(descending=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
epochs = 5
for epoch in range(epochs):
    frac = min(1.0, 0.3 + 0.7 * epoch / (epochs - 2))
    pool = order[: int(frac * len(order))]
    net.train()
    for i in pool[torch.randperm(len(pool))].split(24):
        loss = F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        acc = (net(X).argmax(1) == Y).float().mean()
    print(f"{epoch}: {len(pool)} samples, acc {acc:.3f}")
# /// correct custom_function_needs_input_grad
# ///
import torch
from torch import nn
from torch.autograd import Function, gradcheck

torch.manual_seed(0)


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Linear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(o, i).uniform_(-0.3, 0.3))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        return LinearFunction.apply(x, self.weight, self.bias)


net = nn.Sequential(Linear(6, 16), nn.Tanh(), Linear(16, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
x = torch.randn(40, 6)
t = x.sum(1, keepdim=True)
for _ in range(6):
    opt.zero_grad()
    loss = (net(x) - t).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
a = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
b = torch.randn(2, 4, dtype=torch.double, requires_grad=True)
print(gradcheck(LinearFunction.apply, (a, b, None)))
# /// correct custom_function_spiking_surrogate
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Spike(torch.autograd.Function):
    scale = 10.0

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (Spike.scale * v.abs() + 1.0) ** 2


class SNN(nn.Module):
    def __init__(self, i=20, h=30, o=2, alpha=0.9, beta=0.8):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(i, h) * 1.5 / i**0.5)
        self.w2 = nn.Parameter(torch.randn(h, o) * 1.5 / h**0.5)
        self.alpha, self.beta = alpha, beta

    def forward(self, x):
        B = x.size(0)
        syn = mem = torch.zeros(B, self.w1.size(1))
        flt = out = torch.zeros(B, self.w2.size(1))
        rec, spikes = [], []
        for t in range(x.size(1)):
            s = Spike.apply(mem - 1.0)
            reset = s.detach()
            syn = self.alpha * syn + x[:, t] @ self.w1
            mem = (self.beta * mem + syn) * (1.0 - reset)
            flt = self.alpha * flt + s @ self.w2
            out = self.beta * out + flt
            rec.append(out)
            spikes.append(s)
        return torch.stack(rec, 1), torch.stack(spikes, 1)


net = SNN()
opt = torch.optim.Adamax(net.parameters(), lr=5e-3)
x = (torch.rand(16, 15, 20) < 0.15).float()
y = torch.randint(0, 2, (16,))
for e in range(5):
    out, spk = net(x)
    loss = F.nll_loss(F.log_softmax(out.max(1).values, 1), y) + 1e-5 * spk.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(e, loss.item(), spk.mean().item())
# /// correct custom_functions_in_a_layer
# ///
import torch
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s)
        ctx.beta = beta
        return x * s

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, s = ctx.saved_tensors
        return grad * (s + ctx.beta * x * s * (1 - s)), None


class SparseMix(Function):
    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return x @ w.t()

    @staticmethod
    def backward(ctx, grad):
        w, x = ctx.saved_tensors
        gw = grad.t() @ x if ctx.needs_input_grad[0] else None
        gx = grad @ w if ctx.needs_input_grad[1] else None
        return gw, gx


class RoundThrough(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Layer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.randn(o, i) / i**0.5)

    def forward(self, x):
        return Swish.apply(SparseMix.apply(self.w, x), 1.5)


torch.manual_seed(2)
first, second = Layer(6, 16), Layer(16, 6)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=1e-2)
for _ in range(8):
    x = torch.rand(32, 6) * 4
    code = RoundThrough.apply(first(x))
    loss = nn.functional.smooth_l1_loss(second(code), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct cyclegan_chained_generators
# ///
import itertools

import torch
from torch import nn

torch.manual_seed(0)


def block(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


G_AB, G_BA, D_A, D_B = block(3, 16, 3), block(3, 16, 3), block(3, 16, 1), block(3, 16, 1)
gan, cyc, idt = nn.MSELoss(), nn.L1Loss(), nn.L1Loss()
opt_G = torch.optim.Adam(itertools.chain(G_AB.parameters(), G_BA.parameters()), lr=1e-3, betas=(0.5, 0.999))
opt_D_A, opt_D_B = torch.optim.Adam(D_A.parameters(), lr=1e-3), torch.optim.Adam(D_B.parameters(), lr=1e-3)
for step in range(4):
    a, b = torch.randn(8, 3), torch.randn(8, 3) * 0.5 + 2
    real, fake = torch.ones(8, 1), torch.zeros(8, 1)
    opt_G.zero_grad()
    fake_b, fake_a = G_AB(a), G_BA(b)
    loss_gan = gan(D_B(fake_b), real) + gan(D_A(fake_a), real)
    loss_cyc = cyc(G_BA(fake_b), a) + cyc(G_AB(fake_a), b)
    loss_idt = idt(G_AB(b), b) + idt(G_BA(a), a)
    loss_G = loss_gan + 10.0 * loss_cyc + 5.0 * loss_idt
    loss_G.backward()
    opt_G.step()
    for D, opt, x, y in ((D_A, opt_D_A, a, fake_a), (D_B, opt_D_B, b, fake_b)):
        opt.zero_grad()
        loss_D = (gan(D(x), real) + gan(D(y.detach()), fake)) / 2
        loss_D.backward()
        opt.step()
    print(step, loss_G.item(), loss_D.item())
# /// correct dann_reversal_function_with_schedule
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class ReverseLayerF(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.class_classifier = nn.Linear(24, 2)
        self.domain_classifier = nn.Sequential(nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 2))

    def forward(self, x, alpha):
        f = self.feature(x)
        return self.class_classifier(f), self.domain_classifier(ReverseLayerF.apply(f, alpha))


net = DANN()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
loss_class = loss_domain = nn.CrossEntropyLoss()
n_epoch, n_batch = 3, 4
for epoch in range(n_epoch):
    for i in range(n_batch):
        p = (i + epoch * n_batch) / n_epoch / n_batch
        alpha = 2.0 / (1.0 + math.exp(-10 * p)) - 1
        s_x, t_x = torch.randn(16, 6), torch.randn(16, 6) + 1
        s_y = (s_x[:, 0] > 0).long()
        net.zero_grad()
        cls, dom_s = net(s_x, alpha)
        _, dom_t = net(t_x, alpha)
        err = loss_class(cls, s_y) + loss_domain(dom_s, torch.zeros(16).long()) + loss_domain(dom_t, torch.ones(16).long())
        err.backward()
        opt.step()
    print(epoch, err.item(), alpha)
# /// correct darts_alternating
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh()), nn.Identity()])
        self.alpha = nn.Parameter(1e-3 * torch.randn(3))

    def forward(self, x):
        return sum(w * op(x) for w, op in zip(F.softmax(self.alpha, -1), self.ops))


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.edges = nn.ModuleList(Mixed() for _ in range(2))
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        for edge in self.edges:
            x = edge(x)
        return self.out(x)

    def arch(self):
        return [e.alpha for e in self.edges]

    def weights(self):
        return [p for n, p in self.named_parameters() if not n.endswith("alpha")]


cell = Cell()
w_opt = torch.optim.SGD(cell.weights(), lr=0.05, momentum=0.9)
a_opt = torch.optim.Adam(cell.arch(), lr=3e-3)
for _ in range(8):
    xt, xv = torch.randn(16, 6), torch.randn(16, 6)
    a_opt.zero_grad()
    F.cross_entropy(cell(xv), (xv.sum(1) > 0).long()).backward()
    a_opt.step()
    w_opt.zero_grad()
    loss = F.cross_entropy(cell(xt), (xt.sum(1) > 0).long())
    loss.backward()
    nn.utils.clip_grad_norm_(cell.weights(), 5)
    w_opt.step()
print(loss.item(), [F.softmax(a, -1).tolist() for a in cell.arch()])
# /// correct ddpg_ou_noise_actor_through_critic
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class OUNoise:
    def __init__(self, size, theta=0.15, sigma=0.2):
        self.state, self.theta, self.sigma = torch.zeros(size), theta, sigma

    def sample(self):
        self.state = self.state - self.theta * self.state + self.sigma * torch.randn_like(self.state)
        return self.state


class Agent:
    def __init__(self):
        self.actor_local = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
        self.actor_target = copy.deepcopy(self.actor_local)
        self.critic_local = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.critic_target = copy.deepcopy(self.critic_local)
        self.actor_opt = torch.optim.Adam(self.actor_local.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic_local.parameters(), lr=1e-3, weight_decay=1e-4)
        self.noise = OUNoise(1)
        self.memory = []

    def act(self, state):
        self.actor_local.eval()
        with torch.no_grad():
            a = self.actor_local(state)
        self.actor_local.train()
        return (a + self.noise.sample()).clamp(-1, 1)

    def learn(self, batch, gamma=0.95, tau=0.01):
        s, a, r, s2 = (torch.stack(c) for c in zip(*batch))
        q_next = self.critic_target(torch.cat([s2, self.actor_target(s2)], 1))
        q_target = r + gamma * q_next
        q_expected = self.critic_local(torch.cat([s, a], 1))
        critic_loss = F.mse_loss(q_expected, q_target.detach())
        self.critic_opt.zero_grad()
        critic_loss.backward()
        torch.nn.utils.clip_grad_norm_(self.critic_local.parameters(), 1)
        self.critic_opt.step()
        actor_loss = -self.critic_local(torch.cat([s, self.actor_local(s)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        for local, target in ((self.critic_local, self.critic_target), (self.actor_local, self.actor_target)):
            for tp, lp in zip(target.parameters(), local.parameters()):
                tp.data.copy_(tau * lp.data + (1.0 - tau) * tp.data)
        return critic_loss.item(), actor_loss.item()


agent, state = Agent(), torch.randn(3)
for t in range(40):
    action = agent.act(state)
    nxt = 0.8 * state + 0.3 * torch.randn(3)
    agent.memory.append((state, action, -(action - nxt.mean()).abs(), nxt))
    state = nxt
    if len(agent.memory) > 16 and t % 4 == 0:
        idx = torch.randint(0, len(agent.memory), (16,))
        losses = agent.learn([agent.memory[i] for i in idx])
print(losses)
# /// correct ddpm_cosine_ema_and_sampling
# ///
import copy
import math

import torch
from torch import nn

torch.manual_seed(0)
T = 20
s = 0.008
grid = torch.arange(T + 1) / T
f = torch.cos((grid + s) / (1 + s) * math.pi / 2) ** 2
betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
alphas = 1 - betas
abar = torch.cumprod(alphas, 0)


def embed(t, dim=16):
    freq = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    arg = t[:, None].float() * freq[None]
    return torch.cat([arg.sin(), arg.cos()], -1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU())
        self.inp = nn.Linear(2, 32)
        self.out = nn.Sequential(nn.SiLU(), nn.Linear(32, 32), nn.SiLU(), nn.Linear(32, 2))
        nn.init.zeros_(self.out[-1].weight)
        nn.init.zeros_(self.out[-1].bias)

    def forward(self, x, t):
        return self.out(self.inp(x) + self.time(embed(t)))


model = Denoiser()
ema = copy.deepcopy(model).requires_grad_(False).eval()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for step in range(12):
    x0 = torch.randn(32, 2) * 0.2 + torch.tensor([1.0, -1.0])
    t = torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    xt = abar[t].sqrt()[:, None] * x0 + (1 - abar[t]).sqrt()[:, None] * noise
    loss = (model(xt, t) - noise).pow(2).mean()
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    with torch.no_grad():
        for pe, p in zip(ema.parameters(), model.parameters()):
            pe.lerp_(p, 0.1)


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = ema(x, t)
        x = (x - betas[i] / (1 - abar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


print(loss.item(), sample(8).mean(0))
# /// correct ddpm_noise_prediction
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)
steps = 20
betas = torch.linspace(1e-3, 0.2, steps)
kept = torch.cumprod(1 - betas, 0)
model = nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2))
ema = copy.deepcopy(model).eval()
for p in ema.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for i in range(6):
    x0 = torch.randn(32, 2) * 0.3 + 1
    t = torch.randint(0, steps, (32,))
    noise = torch.randn_like(x0)
    xt = kept[t, None].sqrt() * x0 + (1 - kept[t, None]).sqrt() * noise
    loss = (model(torch.cat([xt, t[:, None] / steps], 1)) - noise).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for a, b in zip(ema.parameters(), model.parameters()):
            a.lerp_(b, 0.05)
with torch.no_grad():
    x = torch.randn(4, 2)
    for t in reversed(range(steps)):
        eps = ema(torch.cat([x, torch.full((4, 1), t / steps)], 1))
        x = (x - betas[t] / (1 - kept[t]).sqrt() * eps) / (1 - betas[t]).sqrt()
        if t:
            x = x + betas[t].sqrt() * torch.randn_like(x)
print(x)
# /// correct decoder_with_rotary_and_kv_cache
# ///
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, heads, limit):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)
        half = dim // heads // 2
        angle = torch.outer(torch.arange(limit).float(), 10000 ** (-torch.arange(half) / half))
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self.cache = None

    def forward(self, x, start=0):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        cos, sin = self.cos[start : start + t], self.sin[start : start + t]
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.cache is not None:
            self.cache[0][:b, :, start : start + t] = k
            self.cache[1][:b, :, start : start + t] = v
            k, v = self.cache[0][:b, :, : start + t], self.cache[1][:b, :, : start + t]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads, limit):
        super().__init__()
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)
        self.attn = Attention(dim, heads, limit)
        self.w1, self.w2, self.w3 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 2 * dim)

    def forward(self, x, start=0):
        x = x + self.attn(self.n1(x), start)
        return x + self.w2(F.silu(self.w1(self.n2(x))) * self.w3(self.n2(x)))


class Decoder(nn.Module):
    def __init__(self, vocab=17, dim=16, heads=2, depth=2, limit=24):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList(Block(dim, heads, limit) for _ in range(depth))
        self.norm, self.head = RMSNorm(dim), nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, ids, targets=None, start=0):
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x, start)
        if targets is None:
            return self.head(self.norm(x[:, [-1]])), None
        logits = self.head(self.norm(x))
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, label_smoothing=0.1)

    @torch.inference_mode()
    def generate(self, ids, count):
        for block in self.blocks:
            block.attn.cache = torch.zeros(2, 1, 2, 24, 8)
        logits, _ = self(ids)
        for _ in range(count):
            nxt = torch.multinomial(F.softmax(logits[:, -1] / 0.8, dim=-1), 1)
            ids = torch.cat([ids, nxt], dim=1)
            logits, _ = self(nxt, start=ids.shape[1] - 1)
        for block in self.blocks:
            block.attn.cache = None
        return ids


torch.manual_seed(0)
model = Decoder()
decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optim = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)
warm = torch.optim.lr_scheduler.LambdaLR(
    optim, lambda it: it / 3 if it < 3 else 0.5 * (1 + math.cos(math.pi * (it - 3) / 5))
)
text = torch.randint(0, 17, (200,))
for it in range(6):
    model.train()
    optim.zero_grad(set_to_none=True)
    for micro in range(2):
        at = torch.randint(0, 180, (4,))
        x = torch.stack([text[i : i + 12] for i in at])
        y = torch.stack([text[i + 1 : i + 13] for i in at])
        _, loss = model(x, y)
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optim.step()
    warm.step()
    if it % 3 == 2:
        model.eval()
        print(it, loss.item(), model.generate(text[None, :4], 5).tolist())
# /// correct deep_dream_and_total_variation_input
# ///
import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
for p in features.parameters():
    p.requires_grad_(False)
features.eval()
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


with torch.no_grad():
    target_content, target_gram = features(content), gram(features(style))
canvas = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([canvas], lr=0.05)
for it in range(12):
    f = features(canvas)
    c_loss = (f - target_content).pow(2).mean()
    s_loss = (gram(f) - target_gram).pow(2).sum()
    tv = (canvas[..., 1:] - canvas[..., :-1]).abs().mean() + (canvas[..., 1:, :] - canvas[..., :-1, :]).abs().mean()
    loss = c_loss + 1e3 * s_loss + 1e-2 * tv
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        canvas.clamp_(0, 1)
print(c_loss.item(), s_loss.item(), tv.item())
# /// correct deep_equilibrium_implicit_gradient
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Cell(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.W, self.U = nn.Linear(d, d, bias=False), nn.Linear(d, d)
        nn.init.normal_(self.W.weight, std=0.1)

    def forward(self, z, x):
        return torch.tanh(self.W(z) + self.U(x))


class DEQ(nn.Module):
    def __init__(self, d, iters=15):
        super().__init__()
        self.cell, self.iters = Cell(d), iters

    def forward(self, x):
        with torch.no_grad():
            z = torch.zeros_like(x)
            for _ in range(self.iters):
                z = self.cell(z, x)
        z = self.cell(z, x)
        if self.training:
            z0 = z.clone().detach().requires_grad_()
            f0 = self.cell(z0, x)

            def backward_hook(grad):
                g = grad
                for _ in range(self.iters):
                    g = torch.autograd.grad(f0, z0, g, retain_graph=True)[0] + grad
                return g

            z.register_hook(backward_hook)
        return z


net = nn.Sequential(nn.Linear(4, 8), DEQ(8), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(32, 4)
y = x.prod(1, keepdim=True)
for step in range(6):
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    opt.step()
    print(step, loss.item())
# /// correct deep_mutual_learning_two_students
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(6, h), nn.ReLU(), nn.Linear(h, 3)) for h in (16, 24)]
optims = [torch.optim.SGD(n.parameters(), lr=0.05, momentum=0.9) for n in nets]
X, Y = torch.randn(64, 6), torch.randint(0, 3, (64,))
for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        outs = [n(X[idx]) for n in nets]
        for i, (net, opt) in enumerate(zip(nets, optims)):
            ce = F.cross_entropy(outs[i], Y[idx])
            kl = 0.0
            for j in range(len(nets)):
                if j != i:
                    kl += F.kl_div(F.log_softmax(outs[i], 1), F.softmax(outs[j].detach(), 1), reduction="batchmean")
            loss = ce + kl / (len(nets) - 1)
            opt.zero_grad()
            loss.backward()
            opt.step()
    accs = []
    with torch.no_grad():
        for n in nets:
            accs.append((n(X).argmax(1) == Y).float().mean().item())
    print(epoch, accs)
# /// correct denoising_score_matching_annealed
# ///
import torch
from torch import nn

torch.manual_seed(0)
sigmas = torch.logspace(0, -1.5, 6)


class Score(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, x, sigma):
        return self.net(torch.cat([x, sigma.log().expand(len(x), 1)], 1)) / sigma


score = Score()
opt = torch.optim.Adam(score.parameters(), lr=1e-3)
for it in range(12):
    x = torch.randn(64, 2) * 0.3 + torch.where(torch.rand(64, 1) < 0.5, 1.0, -1.0)
    sigma = sigmas[torch.randint(0, 6, (64,))].unsqueeze(1)
    noise = torch.randn_like(x) * sigma
    target = -noise / sigma**2
    s = score(x + noise, sigma)
    loss = 0.5 * ((s - target) ** 2).sum(1, keepdim=True).mul(sigma**2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    y = torch.rand(10, 2) * 2 - 1
    for sg in sigmas:
        a = 2e-3 * (sg / sigmas[-1]) ** 2
        for _ in range(3):
            y = y + a / 2 * score(y, sg.view(1, 1)) + a.sqrt() * torch.randn_like(y)
print(loss.item(), y.abs().mean().item())
# /// correct dino_centred_teacher
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Head(nn.Module):
    def __init__(self, dim, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, 8))
        self.last = nn.utils.parametrizations.weight_norm(nn.Linear(8, out, bias=False))
        self.last.parametrizations.weight.original0.data.fill_(1)
        self.last.parametrizations.weight.original0.requires_grad = False

    def forward(self, x):
        return self.last(F.normalize(self.mlp(x), dim=-1))


student = nn.Sequential(nn.Linear(10, 12), nn.GELU(), Head(12, 20))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad = False
center = torch.zeros(1, 20)
optimizer = torch.optim.AdamW([p for p in student.parameters() if p.requires_grad], lr=1e-3)
for it in range(5):
    images = torch.randn(8, 10)
    views = [images + 0.1 * torch.randn_like(images) for _ in range(4)]
    with torch.no_grad():
        targets = [F.softmax((teacher(v) - center) / 0.04, dim=-1) for v in views[:2]]
    guesses = [student(v) / 0.1 for v in views]
    losses = [
        -(t * F.log_softmax(g, dim=-1)).sum(-1).mean()
        for i, t in enumerate(targets)
        for j, g in enumerate(guesses)
        if i != j
    ]
    loss = sum(losses) / len(losses)
    optimizer.zero_grad()
    loss.backward()
    if it < 2:
        for name, p in student.named_parameters():
            if "last" in name:
                p.grad = None
    nn.utils.clip_grad_norm_(student.parameters(), 3.0)
    optimizer.step()
    with torch.no_grad():
        momentum = 1 - (1 - 0.99) * (1 - it / 5)
        for ps, pt in zip(student.parameters(), teacher.parameters()):
            pt.mul_(momentum).add_((1 - momentum) * ps.detach())
        center = 0.9 * center + 0.1 * torch.cat([teacher(v) for v in views[:2]]).mean(0, keepdim=True)
# /// correct distillation_hard_and_soft_with_cosine
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def mlp(*sizes):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


X = torch.randn(96, 8)
y = (X[:, :3].sum(1) > 0).long() + (X[:, 3] > 1).long()
teacher, student = mlp(8, 64, 64, 3), mlp(8, 12, 3)


def fit_teacher(epochs=6):
    opt = torch.optim.Adam(teacher.parameters(), 1e-2)
    for _ in range(epochs):
        opt.zero_grad()
        F.cross_entropy(teacher(X), y).backward()
        opt.step()


def kd_loss(s, t, y, T=4.0, a=0.7):
    soft = nn.KLDivLoss(reduction="batchmean")(F.log_softmax(s / T, dim=1), F.softmax(t / T, dim=1)) * (T * T)
    return a * soft + (1 - a) * F.cross_entropy(s, y)


fit_teacher()
teacher.eval()
student.train()
optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5 * 3)
for epoch in range(5):
    running = 0.0
    for idx in torch.randperm(96).split(32):
        with torch.no_grad():
            t = teacher(X[idx])
        s = student(X[idx])
        loss = kd_loss(s, t, y[idx])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item() * len(idx)
    print(epoch, running / 96)
# /// correct distillation_temperature
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
student = nn.Linear(8, 4)
opt = torch.optim.SGD(student.parameters(), lr=0.1)
T = 3.0
for x in torch.randn(5, 16, 8):
    y = torch.randint(0, 4, (16,))
    with torch.no_grad():
        soft = F.softmax(teacher(x) / T, dim=1)
    logits = student(x)
    loss = 0.7 * T * T * F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") + 0.3 * F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct distillation_with_hints_and_hooks
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def net(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))


class Tap:
    def __init__(self, module):
        self.value = None
        self.handle = module.register_forward_hook(self._keep)

    def _keep(self, module, args, output):
        self.value = output


teacher, student = net(48).eval(), net(16)
teacher.requires_grad_(False)
bridge = nn.Linear(16, 48, bias=False)
taps = Tap(teacher[2]), Tap(student[2])
optimizer = torch.optim.SGD([{"params": student.parameters()}, {"params": bridge.parameters(), "lr": 0.02}], lr=0.05, momentum=0.9)
for step in range(8):
    x = torch.randn(32, 10)
    with torch.no_grad():
        soft = F.softmax(teacher(x) / 3, dim=-1)
    logits = student(x)
    kd = F.kl_div(F.log_softmax(logits / 3, dim=-1), soft, reduction="batchmean") * 9
    hint = F.mse_loss(bridge(taps[1].value), taps[0].value)
    loss = kd + 0.1 * hint
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
for tap in taps:
    tap.handle.remove()
# /// correct domain_adversarial_reversal
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None


features, label, domain = nn.Linear(5, 10), nn.Linear(10, 2), nn.Linear(10, 2)
params = [p for m in (features, label, domain) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.05)
for x in torch.randn(5, 16, 5):
    h = torch.relu(features(x))
    loss = nn.functional.cross_entropy(label(h), (x[:, 0] > 0).long())
    loss = loss + nn.functional.cross_entropy(domain(Reverse.apply(h, 0.3)), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct double_dqn_soft_update_epsilon
# ///
import copy
import random
from collections import deque

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


class QNet(nn.Module):
    def __init__(self, n_obs, n_act):
        super().__init__()
        self.layer1 = nn.Linear(n_obs, 32)
        self.layer2 = nn.Linear(32, 32)
        self.layer3 = nn.Linear(32, n_act)

    def forward(self, x):
        x = torch.relu(self.layer1(x))
        x = torch.relu(self.layer2(x))
        return self.layer3(x)


policy_net = QNet(3, 2)
target_net = copy.deepcopy(policy_net).eval()
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = deque(maxlen=200)
TAU, GAMMA, eps = 0.01, 0.97, 1.0
state = torch.randn(3)
for t in range(60):
    if random.random() < eps:
        action = random.randrange(2)
    else:
        with torch.no_grad():
            action = policy_net(state.unsqueeze(0)).argmax(1).item()
    eps = max(0.05, eps * 0.97)
    reward = 1.0 if (state[1] > 0) == bool(action) else -1.0
    nxt = None if random.random() < 0.05 else torch.randn(3)
    memory.append((state, action, reward, nxt))
    state = nxt if nxt is not None else torch.randn(3)
    if len(memory) < 32:
        continue
    s, a, r, n = zip(*random.sample(memory, 16))
    s, a, r = torch.stack(s), torch.tensor(a), torch.tensor(r)
    non_final = torch.tensor([x is not None for x in n])
    q = policy_net(s).gather(1, a.unsqueeze(1))
    next_value = torch.zeros(16)
    with torch.no_grad():
        ns = torch.stack([x for x in n if x is not None])
        best = policy_net(ns).argmax(1, keepdim=True)
        next_value[non_final] = target_net(ns).gather(1, best).squeeze(1)
    target = r + GAMMA * next_value
    loss = nn.SmoothL1Loss()(q, target.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    new, old = policy_net.state_dict(), target_net.state_dict()
    for key in new:
        old[key] = new[key] * TAU + old[key] * (1 - TAU)
    target_net.load_state_dict(old)
print(len(memory), loss.item())
# /// correct dp_sgd_per_sample_clipping
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.5)
C, sigma, batch = 1.0, 0.5, 16


def sample_loss(params, x, y):
    return F.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), y.unsqueeze(0))


sample_grad = vmap(grad(sample_loss), in_dims=(None, 0, 0))
X = torch.randn(64, 8)
Y = X[:, :3].argmax(1)
for epoch in range(2):
    for idx in torch.randperm(64).split(batch):
        params = {k: v.detach() for k, v in model.named_parameters()}
        grads = sample_grad(params, X[idx], Y[idx])
        norm = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()], 1).norm(dim=1)
        scale = (C / (norm + 1e-6)).clamp(max=1.0)
        for name, p in model.named_parameters():
            clipped = torch.einsum("n,n...->...", scale, grads[name])
            p.grad = (clipped + sigma * C * torch.randn_like(p)) / batch
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        print(epoch, F.cross_entropy(model(X), Y).item(), norm.max().item())
# /// correct dpo_with_reference_policy
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V, PAD = 12, 0


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(V, 12), nn.GRU(12, 16, batch_first=True), nn.Linear(16, V)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def sequence_logp(model, ids, prompt_len):
    logits = model(ids[:, :-1])
    logp = torch.gather(logits.log_softmax(-1), 2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    mask = (torch.arange(ids.size(1) - 1) >= prompt_len - 1) & (ids[:, 1:] != PAD)
    return (logp * mask).sum(-1)


policy = LM()
ref = copy.deepcopy(policy).eval()
for p in ref.parameters():
    p.requires_grad = False
opt = torch.optim.AdamW(policy.parameters(), lr=3e-3)
beta = 0.5
for step in range(6):
    prompt = torch.randint(1, V, (8, 4))
    chosen = torch.cat([prompt, prompt.flip(1)], 1)
    rejected = torch.cat([prompt, torch.randint(1, V, (8, 4))], 1)
    rejected[::2, -1] = PAD
    both = torch.cat([chosen, rejected])
    pol = sequence_logp(policy, both, 4)
    with torch.no_grad():
        base = sequence_logp(ref, both, 4)
    ratio = pol - base
    margin = beta * (ratio[:8] - ratio[8:])
    loss = -F.logsigmoid(margin).mean()
    opt.zero_grad()
    loss.backward()
    gn = nn.utils.clip_grad_norm_(policy.parameters(), 10.0)
    opt.step()
    print(step, loss.item(), (margin > 0).float().mean().item(), gn.item())
# /// correct dqn_with_target_network
# ///
import copy
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
online = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
replay = [(torch.randn(4), random.randrange(2), random.random(), torch.randn(4)) for _ in range(40)]
for step in range(8):
    batch = random.sample(replay, 8)
    s, a, r, s2 = (torch.stack([torch.as_tensor(x) for x in column]) for column in zip(*batch))
    q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
    with torch.no_grad():
        goal = r.float() + 0.99 * target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(q, goal)
    optimizer.zero_grad()
    loss.backward()
    for p in online.parameters():
        p.grad.clamp_(-1, 1)
    optimizer.step()
    if step % 4 == 3:
        target.load_state_dict(online.state_dict())
print(loss.item())
# /// correct dueling_c51_categorical_projection
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)
ATOMS, VMIN, VMAX, GAMMA = 11, -5.0, 5.0, 0.9
support = torch.linspace(VMIN, VMAX, ATOMS)
dz = (VMAX - VMIN) / (ATOMS - 1)


class C51(nn.Module):
    def __init__(self, obs=3, acts=2):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(obs, 24), nn.ReLU())
        self.adv, self.val = nn.Linear(24, acts * ATOMS), nn.Linear(24, ATOMS)
        self.acts = acts

    def forward(self, x):
        h = self.body(x)
        a = self.adv(h).view(-1, self.acts, ATOMS)
        v = self.val(h).view(-1, 1, ATOMS)
        return (v + a - a.mean(1, keepdim=True)).log_softmax(-1)


@torch.no_grad()
def project(net, target, r, s2, done):
    best = (net(s2).exp() * support).sum(-1).argmax(-1)
    p = target(s2).exp()[torch.arange(len(s2)), best]
    tz = (r[:, None] + GAMMA * (1 - done[:, None]) * support).clamp(VMIN, VMAX)
    b = (tz - VMIN) / dz
    lo, hi = b.floor().long(), b.ceil().long()
    lo[(hi > 0) & (lo == hi)] -= 1
    hi[(lo < ATOMS - 1) & (lo == hi)] += 1
    m = torch.zeros_like(p)
    m.scatter_add_(1, lo, p * (hi.float() - b))
    m.scatter_add_(1, hi, p * (b - lo.float()))
    return m


net = C51()
target = copy.deepcopy(net)
opt = torch.optim.Adam(net.parameters(), lr=1e-3, eps=1.5e-4)
for step in range(12):
    s, s2 = torch.randn(32, 3), torch.randn(32, 3)
    a = torch.randint(0, 2, (32,))
    r, done = (a == (s[:, 0] > 0)).float(), (torch.rand(32) < 0.1).float()
    m = project(net, target, r, s2, done)
    logp = net(s)[torch.arange(32), a]
    per = -(m * logp).sum(1)
    priorities = per.detach() + 1e-6
    weights = (priorities.mean() / priorities).clamp(max=2)
    loss = (weights * per).mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 10.0)
    opt.step()
    if step % 5 == 4:
        target.load_state_dict(net.state_dict())
print(loss.item(), priorities.max().item())
# /// correct early_stopping_best_state
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Dropout(0.1), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)
train, valid = torch.randn(40, 4), torch.randn(20, 4)
best, best_loss, waited = None, float("inf"), 0
for epoch in range(8):
    net.train()
    for x in train.split(10):
        opt.zero_grad()
        (net(x).squeeze(1) - x.prod(1)).pow(2).mean().backward()
        opt.step()
    net.eval()
    with torch.inference_mode():
        current = (net(valid).squeeze(1) - valid.prod(1)).pow(2).mean().item()
    plateau.step(current)
    if current < best_loss:
        best, best_loss, waited = copy.deepcopy(net.state_dict()), current, 0
    else:
        waited += 1
        if waited > 2:
            break
net.load_state_dict(best)
print(epoch, best_loss)
# /// correct early_stopping_restores_best
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)


class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best, self.counter, self.state, self.stop = None, 0, None, False

    def __call__(self, val_loss, model):
        if self.best is None or val_loss < self.best - self.delta:
            self.best, self.counter = val_loss, 0
            self.state = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience


model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
X, y = torch.randn(40, 20), torch.randn(40, 1)
stopper = EarlyStopping()
history = {"train": [], "val": []}
for epoch in range(30):
    model.train()
    opt.zero_grad()
    train_loss = nn.functional.mse_loss(model(X[:25]), y[:25])
    train_loss.backward()
    opt.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(model(X[25:]), y[25:]).item()
    history["train"].append(train_loss.item())
    history["val"].append(val_loss)
    stopper(val_loss, model)
    if stopper.stop:
        print("stopped at", epoch)
        break
model.load_state_dict(stopper.state)
model.eval()
with torch.no_grad():
    print(stopper.best, nn.functional.mse_loss(model(X[25:]), y[25:]).item())
# /// correct ema_shadow_swapped_for_validation
# ///
import torch
from torch import nn

torch.manual_seed(0)


class EMA:
    def __init__(self, model, decay):
        self.model, self.decay = model, decay
        self.shadow, self.backup = {}, {}
        for name, param in model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = param.data.clone()

    def update(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.shadow[name] = (1.0 - self.decay) * param.data + self.decay * self.shadow[name].clone()

    def apply_shadow(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                self.backup[name] = param.data
                param.data = self.shadow[name]

    def restore(self):
        for name, param in self.model.named_parameters():
            if param.requires_grad:
                param.data = self.backup[name]
        self.backup = {}


net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
ema = EMA(net, 0.9)
x, y = torch.randn(80, 5), torch.randn(80)
loss_fn = nn.MSELoss()
for epoch in range(4):
    net.train()
    for i in torch.randperm(60).split(20):
        pred = net(x[i]).squeeze(-1)
        loss = loss_fn(pred, y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ema.update()
    ema.apply_shadow()
    net.eval()
    with torch.no_grad():
        val = loss_fn(net(x[60:]).squeeze(-1), y[60:])
    ema.restore()
    print(epoch, loss.item(), val.item())
# /// correct energy_model_langevin_persistent
# ///
import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(energy.parameters(), lr=1e-3, betas=(0.0, 0.999))
buffer = torch.rand(200, 2) * 4 - 2


def requires(flag):
    for p in energy.parameters():
        p.requires_grad_(flag)


def langevin(x, steps=8, step=0.05, noise=0.02):
    x = x.clone().detach().requires_grad_(True)
    for _ in range(steps):
        e = energy(x).sum()
        e.backward()
        x.data.add_(-step * x.grad + noise * torch.randn_like(x))
        x.data.clamp_(-3, 3)
        x.grad.detach_()
        x.grad.zero_()
    return x.detach()


for it in range(8):
    pos = torch.randn(32, 2) * 0.3 + 1
    idx = torch.randint(0, 200, (32,))
    start = torch.where(torch.rand(32, 1) < 0.05, torch.rand(32, 2) * 4 - 2, buffer[idx])
    requires(False)
    energy.eval()
    neg = langevin(start)
    buffer[idx] = neg
    energy.train()
    requires(True)
    e_pos, e_neg = energy(pos), energy(neg)
    loss = e_pos.mean() - e_neg.mean() + 0.1 * (e_pos.pow(2) + e_neg.pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(it, loss.item(), e_pos.mean().item(), e_neg.mean().item())
# /// correct equilibrium_model_with_backward_hook
# ///
import torch
from torch import nn


class Equilibrium(nn.Module):
    def __init__(self, cell, tol=1e-4, limit=30):
        super().__init__()
        self.cell, self.tol, self.limit = cell, tol, limit

    def solve(self, f, z):
        for _ in range(self.limit):
            following = f(z)
            if (following - z).norm() < self.tol:
                return following
            z = following
        return z

    def forward(self, x):
        with torch.no_grad():
            z = self.solve(lambda z: self.cell(z, x), torch.zeros_like(x))
        z = self.cell(z, x)
        z0 = z.clone().detach().requires_grad_()
        f0 = self.cell(z0, x)

        def backward_hook(grad):
            return self.solve(lambda y: torch.autograd.grad(f0, z0, y, retain_graph=True)[0] + grad, grad)

        if z.requires_grad:
            z.register_hook(backward_hook)
        return z


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        nn.init.normal_(self.inner.weight, std=0.05)

    def forward(self, z, x):
        return torch.tanh(self.norm(self.inner(z) + x))


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 6), Equilibrium(Cell(6)), nn.Linear(6, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(10, 4)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    print(model(torch.randn(3, 4)).argmax(-1))
# /// correct evidential_and_ensemble_parallel_training
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
ensemble = nn.ModuleList(nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2)) for _ in range(4))
opt = torch.optim.Adam(ensemble.parameters(), lr=5e-3)
X = torch.randn(100, 2)
Y = (X.prod(1) > 0).long()
bags = [torch.randint(0, 80, (80,)) for _ in ensemble]
for epoch in range(4):
    for k in range(4):
        loss = 0
        for net, bag in zip(ensemble, bags):
            i = bag[k * 20 : (k + 1) * 20]
            loss = loss + F.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        p = torch.stack([net(X[80:]).softmax(-1) for net in ensemble])
        disagreement = p.var(0).sum(-1).mean()
        acc = (p.mean(0).argmax(-1) == Y[80:]).float().mean()
    print(epoch, loss.item() / 4, acc.item(), disagreement.item())
# /// correct ewc_two_tasks
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))


def task(w):
    x = torch.randn(80, 6)
    return x, (x @ w > 0).long()


tasks = [task(torch.randn(6)) for _ in range(2)]
fisher, anchor = {}, {}


def penalty():
    loss = 0.0
    for n, p in net.named_parameters():
        if n in fisher:
            loss = loss + (fisher[n] * (p - anchor[n]).pow(2)).sum()
    return loss


def consolidate(x, y):
    net.eval()
    for n, p in net.named_parameters():
        fisher[n] = torch.zeros_like(p)
    for xi, yi in zip(x[:10], y[:10]):
        net.zero_grad()
        F.nll_loss(F.log_softmax(net(xi[None]), 1), yi[None]).backward()
        for n, p in net.named_parameters():
            fisher[n] += p.grad.data.pow(2) / 10
    for n, p in net.named_parameters():
        anchor[n] = p.data.clone()
    net.train()


for k, (x, y) in enumerate(tasks):
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(3):
        for i in torch.randperm(80).split(20):
            opt.zero_grad()
            loss = F.cross_entropy(net(x[i]), y[i]) + 50 * penalty()
            loss.backward()
            opt.step()
    consolidate(x, y)
    with torch.no_grad():
        print(k, [(net(a).argmax(1) == b).float().mean().item() for a, b in tasks[: k + 1]])
# /// correct factorisation_with_sparse_tables
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Factors(nn.Module):
    def __init__(self, users, items, rank):
        super().__init__()
        self.user, self.item = nn.Embedding(users, rank, sparse=True), nn.Embedding(items, rank, sparse=True)
        self.tilt = nn.Parameter(torch.zeros(()))
        for table in (self.user, self.item):
            nn.init.normal_(table.weight, std=0.1)

    def forward(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1) + self.tilt


model = Factors(30, 40, 5)
sparse = torch.optim.SparseAdam([model.user.weight, model.item.weight], lr=0.02)
dense = torch.optim.SGD([model.tilt], lr=0.1)
ratings = torch.randn(30, 40)
for epoch in range(3):
    total = torch.zeros(())
    for u in torch.randperm(30).split(10):
        i = torch.randint(0, 40, (10,))
        error = model(u, i) - ratings[u, i]
        loss = error.square().mean()
        for opt in (sparse, dense):
            opt.zero_grad()
        loss.backward()
        for opt in (sparse, dense):
            opt.step()
        total += loss.detach()
    with torch.no_grad():
        norms = model.user.weight.norm(dim=1, keepdim=True).clamp(min=1.0)
        model.user.weight.div_(norms)
    print(epoch, f"{total.item() / 3:.4f}")
# /// correct fgsm_adversarial_training
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loss_fn = nn.CrossEntropyLoss()


def attack(x, y, epsilon=0.1):
    x = x.detach().clone().requires_grad_(True)
    (g,) = torch.autograd.grad(loss_fn(net(x), y), x)
    return (x + epsilon * g.sign()).detach()


for x in torch.randn(5, 12, 6):
    y = (x[:, 0] > 0).long()
    opt.zero_grad()
    loss = loss_fn(net(attack(x, y)), y)
    loss.backward()
    opt.step()
print(loss.item())
# /// correct first_order_maml_by_deepcopy
# ///
import copy

import torch
from torch import nn

torch.manual_seed(4)
meta = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
outer = torch.optim.SGD(meta.parameters(), lr=0.1)
for episode in range(4):
    outer.zero_grad()
    for _ in range(3):
        direction = torch.randn(2)
        x = torch.randn(24, 2)
        y = (x @ direction > 0).long()
        clone = copy.deepcopy(meta)
        inner = torch.optim.SGD(clone.parameters(), lr=0.2)
        for _ in range(3):
            loss = nn.functional.cross_entropy(clone(x[:12]), y[:12])
            inner.zero_grad()
            loss.backward()
            inner.step()
        query = nn.functional.cross_entropy(clone(x[12:]), y[12:])
        grads = torch.autograd.grad(query, clone.parameters())
        for p, g in zip(meta.parameters(), grads):
            p.grad = g / 3 if p.grad is None else p.grad + g / 3
    outer.step()
    print(episode, query.item())
# /// correct fixmatch_pseudo_labels
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
xl = torch.randn(24, 6)
yl = xl[:, :3].argmax(1)
xu = torch.randn(120, 6)
threshold, lam = 0.6, 1.0
for step in range(12):
    i, j = torch.randint(0, 24, (8,)), torch.randint(0, 120, (24,))
    weak = xu[j] + 0.05 * torch.randn(24, 6)
    strong = xu[j] * (torch.rand(24, 6) > 0.2) + 0.2 * torch.randn(24, 6)
    logits = model(torch.cat([xl[i], weak, strong]))
    logits_x, (logits_w, logits_s) = logits[:8], logits[8:].chunk(2)
    lx = F.cross_entropy(logits_x, yl[i])
    pseudo = torch.softmax(logits_w.detach(), dim=-1)
    max_p, target = pseudo.max(-1)
    mask = max_p.ge(threshold).float()
    lu = (F.cross_entropy(logits_s, target, reduction="none") * mask).mean()
    loss = lx + lam * lu
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, lx.item(), lu.item(), mask.mean().item())
# /// correct flow_matching_with_classifier_free_dropout
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Velocity(nn.Module):
    def __init__(self, classes=3, dim=2, width=32):
        super().__init__()
        self.emb = nn.Embedding(classes + 1, 8)
        self.null = classes
        self.net = nn.Sequential(nn.Linear(dim + 1 + 8, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, dim))

    def forward(self, x, t, y):
        if self.training:
            drop = torch.rand(y.shape) < 0.2
            y = torch.where(drop, torch.full_like(y, self.null), y)
        return self.net(torch.cat([x, t, self.emb(y)], dim=-1))

    @torch.no_grad()
    def generate(self, y, steps=8, scale=1.5):
        x = torch.randn(len(y), 2)
        for k in range(steps):
            t = torch.full((len(y), 1), k / steps)
            cond = self(x, t, y)
            free = self(x, t, torch.full_like(y, self.null))
            x = x + (free + scale * (cond - free)) / steps
        return x


model = Velocity()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
means = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0]])
model.train()
for step in range(15):
    y = torch.randint(3, (48,))
    x1 = means[y] + 0.1 * torch.randn(48, 2)
    x0 = torch.randn_like(x1)
    t = torch.rand(48, 1)
    xt = (1 - t) * x0 + t * x1
    loss = ((model(xt, t, y) - (x1 - x0)) ** 2).sum(-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
print(loss.item(), model.generate(torch.arange(3)).shape)
# /// correct focal_loss_one_vs_rest_imbalanced
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class FocalLoss(nn.Module):
    def __init__(self, alpha=0.25, gamma=2.0):
        super().__init__()
        self.alpha, self.gamma = alpha, gamma

    def forward(self, logits, targets):
        p = torch.sigmoid(logits)
        ce = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
        p_t = p * targets + (1 - p) * (1 - targets)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * ce * (1 - p_t) ** self.gamma).mean()


X = torch.randn(200, 5)
Y = (X[:, :1] > 1.5).float()
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
prior = 0.07
nn.init.constant_(net[-1].bias, -torch.log(torch.tensor((1 - prior) / prior)).item())
opt = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
criterion = FocalLoss()
for epoch in range(4):
    perm = torch.randperm(200)
    for i in range(0, 200, 50):
        idx = perm[i : i + 50]
        loss = criterion(net(X[idx]), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        pred = net(X) > 0
    print(epoch, loss.item(), pred.sum().item(), "of", int(Y.sum()))
# /// correct free_adversarial_training_minibatch_replay
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
eps, step_size, replays = 0.2, 0.2, 3
noise = torch.zeros(16, 12)
X = torch.randn(64, 12)
Y = (X[:, 0] > X[:, 1]).long()
for epoch in range(2):
    for x, y in zip(X.split(16), Y.split(16)):
        for _ in range(replays):
            noise_batch = noise[: x.size(0)].clone().requires_grad_(True)
            output = model(x + noise_batch)
            loss = criterion(output, y)
            opt.zero_grad()
            loss.backward()
            pert = step_size * torch.sign(noise_batch.grad)
            noise[: x.size(0)] += pert.data
            noise.clamp_(-eps, eps)
            opt.step()
    print(epoch, loss.item())
# /// correct frozen_batchnorm_finetuning
# ///
import torch
from torch import nn

torch.manual_seed(0)


class ResNetish(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(x + self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))

    def train(self, mode=True):
        super().train(mode)
        for m in self.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
                m.weight.requires_grad_(False)
                m.bias.requires_grad_(False)
        return self


net = ResNetish()
net.load_state_dict({k: v + 0.0 for k, v in net.state_dict().items()})
net.train()
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=1e-2, momentum=0.9)
X, Y = torch.randn(24, 3, 6, 6), torch.randint(0, 2, (24,))
for epoch in range(3):
    net.train()
    for i in torch.randperm(24).split(8):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.inference_mode():
        print(epoch, loss.item(), (net(X).argmax(1) == Y).float().mean().item())
# /// correct functional_update_rebinding
# ///
import torch

torch.manual_seed(0)
params = [torch.randn(4, 3, requires_grad=True), torch.zeros(3, requires_grad=True)]
data, goal = torch.randn(20, 4), torch.randn(20, 3)


def loss_of(params):
    w, b = params
    return (data @ w + b - goal).square().mean()


for _ in range(5):
    grads = torch.autograd.grad(loss_of(params), params)
    params = [(p - 0.1 * g).detach().requires_grad_() for p, g in zip(params, grads)]
print(loss_of(params).item())
# /// correct gat_masked_attention_transductive
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
N, D, C = 30, 8, 3
labels = torch.arange(N) % C
features = F.one_hot(labels, D).float() + 0.5 * torch.randn(N, D)
features = features / features.abs().sum(1, keepdim=True)
adj = (torch.rand(N, N) < 0.1) | ((labels[:, None] == labels[None]) & (torch.rand(N, N) < 0.3)) | torch.eye(N).bool()
idx_train, idx_val, idx_test = torch.arange(0, 12), torch.arange(12, 20), torch.arange(20, 30)


class GATLayer(nn.Module):
    def __init__(self, i, o, dropout, concat=True):
        super().__init__()
        self.W = nn.Parameter(torch.empty(i, o))
        self.a = nn.Parameter(torch.empty(2 * o, 1))
        nn.init.xavier_uniform_(self.W, gain=1.414)
        nn.init.xavier_uniform_(self.a, gain=1.414)
        self.o, self.dropout, self.concat = o, dropout, concat

    def forward(self, h, adj):
        Wh = h @ self.W
        e = F.leaky_relu(Wh @ self.a[: self.o] + (Wh @ self.a[self.o :]).T, 0.2)
        attention = torch.where(adj, e, torch.full_like(e, -9e15))
        attention = F.softmax(attention, dim=1)
        attention = F.dropout(attention, self.dropout, training=self.training)
        out = attention @ Wh
        return F.elu(out) if self.concat else out


class GAT(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.attentions = nn.ModuleList([GATLayer(D, 6, 0.3) for _ in range(heads)])
        self.out = GATLayer(6 * heads, C, 0.3, concat=False)

    def forward(self, x, adj):
        x = F.dropout(x, 0.3, training=self.training)
        x = torch.cat([att(x, adj) for att in self.attentions], dim=1)
        return F.log_softmax(self.out(x, adj), dim=1)


model = GAT()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
best, bad = 1e9, 0
for epoch in range(8):
    model.train()
    optimizer.zero_grad()
    output = model(features, adj)
    loss_train = F.nll_loss(output[idx_train], labels[idx_train])
    loss_train.backward()
    optimizer.step()
    model.eval()
    output = model(features, adj)
    loss_val = F.nll_loss(output[idx_val], labels[idx_val])
    if loss_val.item() < best:
        best, bad = loss_val.item(), 0
    else:
        bad += 1
    if bad == 4:
        break
model.eval()
output = model(features, adj)
print((output[idx_test].argmax(1) == labels[idx_test]).float().mean().item())
# /// correct gaussian_process_hyperparameters
# ///
import math

import torch

torch.manual_seed(0)
x = torch.linspace(-2, 2, 25, dtype=torch.float64)[:, None]
y = torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(25, dtype=torch.float64)
raw = {name: torch.zeros((), dtype=torch.float64, requires_grad=True) for name in ("length", "height", "noise")}


def positive(name):
    return torch.nn.functional.softplus(raw[name])


def kernel(a, b):
    return positive("height") * torch.exp(-0.5 * (a - b.T).square() / positive("length") ** 2)


def negative_log_marginal():
    covariance = kernel(x, x) + (positive("noise") + 1e-6) * torch.eye(len(x), dtype=torch.float64)
    chol = torch.linalg.cholesky(covariance)
    alpha = torch.cholesky_solve(y[:, None], chol)
    return 0.5 * (y @ alpha[:, 0]) + chol.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


lbfgs = torch.optim.LBFGS(raw.values(), lr=0.3, max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = negative_log_marginal()
    value.backward()
    return value


for _ in range(3):
    print(float(lbfgs.step(closure)))

point = torch.tensor([[0.3]], dtype=torch.float64, requires_grad=True)
with torch.no_grad():
    solve = torch.linalg.solve(kernel(x, x) + positive("noise") * torch.eye(25, dtype=torch.float64), y)
mean = (kernel(point, x) @ solve).sum()
(slope,) = torch.autograd.grad(mean, point, create_graph=True)
(bend,) = torch.autograd.grad(slope.sum(), point)
print(mean.item(), slope.item(), bend.item())
# /// correct gcn_semi_supervised
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
n = 24
edges = torch.randint(0, n, (2, 60))
adjacency = torch.zeros(n, n).index_put((edges[0], edges[1]), torch.ones(60), accumulate=True)
adjacency = ((adjacency + adjacency.t()) > 0).float() + torch.eye(n)
scale = adjacency.sum(1).rsqrt()
norm = scale[:, None] * adjacency * scale[None]


class GCN(nn.Module):
    def __init__(self, a, h, c):
        super().__init__()
        self.one, self.two = nn.Linear(a, h, bias=False), nn.Linear(h, c, bias=False)

    def forward(self, x, a):
        x = F.relu(a @ self.one(x))
        x = F.dropout(x, 0.5, self.training)
        return F.log_softmax(a @ self.two(x), dim=1)


x, y = torch.randn(n, 5), torch.randint(0, 3, (n,))
known = torch.arange(n) < 8
gcn = GCN(5, 16, 3)
opt = torch.optim.Adam(gcn.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(5):
    gcn.train()
    opt.zero_grad()
    loss = F.nll_loss(gcn(x, norm)[known], y[known])
    loss.backward()
    opt.step()
    gcn.eval()
    with torch.no_grad():
        accuracy = (gcn(x, norm)[~known].argmax(1) == y[~known]).float().mean()
    print(epoch, loss.item(), accuracy.item())
# /// correct generator_of_batches_max_steps
# ///
import itertools

import torch
from torch import nn


def stream(seed, batch=16):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.rand(batch, 2, generator=g) * 2 - 1
        yield x, (x.pow(2).sum(1, keepdim=True) < 0.5).float()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 1))
opt = torch.optim.NAdam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
avg = None
for step, (x, y) in enumerate(itertools.islice(stream(0), 25), 1):
    loss = loss_fn(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = loss.item() if avg is None else 0.9 * avg + 0.1 * loss.item()
    if step % 10 == 0:
        model.eval()
        with torch.no_grad():
            hits = [((model(a) > 0).float() == b).float().mean() for a, b in itertools.islice(stream(99), 3)]
        model.train()
        print(step, avg, torch.stack(hits).mean().item())
# /// correct gnn_message_passing_index_add
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class MPNN(nn.Module):
    def __init__(self, d_in, d_h, d_out):
        super().__init__()
        self.lift = nn.Linear(d_in, d_h)
        self.message = nn.ModuleList(nn.Linear(2 * d_h, d_h) for _ in range(2))
        self.update = nn.ModuleList(nn.GRUCell(d_h, d_h) for _ in range(2))
        self.readout = nn.Linear(d_h, d_out)

    def forward(self, x, edge_index, batch, n_graphs):
        h = F.relu(self.lift(x))
        src, dst = edge_index
        for msg, upd in zip(self.message, self.update):
            m = F.relu(msg(torch.cat([h[src], h[dst]], dim=-1)))
            agg = torch.zeros_like(h).index_add(0, dst, m)
            h = upd(agg, h)
        pooled = torch.zeros(n_graphs, h.size(1))
        pooled.index_add_(0, batch, h)
        return self.readout(pooled / torch.bincount(batch, minlength=n_graphs).unsqueeze(1))


def graphs(k):
    xs, es, b, off = [], [], [], 0
    for g in range(k):
        n = int(torch.randint(4, 8, ()))
        xs.append(torch.randn(n, 5))
        es.append(torch.randint(0, n, (2, 3 * n)) + off)
        b += [g] * n
        off += n
    x = torch.cat(xs)
    b = torch.tensor(b)
    y = torch.zeros(k).index_add(0, b, x[:, 0]).sign().clamp(min=0).long()
    return x, torch.cat(es, 1), b, y


model = MPNN(5, 16, 2)
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    x, e, b, y = graphs(12)
    model.train()
    opt.zero_grad()
    out = model(x, e, b, 12)
    loss = F.cross_entropy(out, y)
    loss.backward()
    opt.step()
    print(epoch, loss.item(), int((out.argmax(1) == y).sum()), "/ 12")
# /// correct gradcam_retained
# ///
import torch
from torch import nn

torch.manual_seed(0)
conv = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
image = torch.rand(1, 1, 10, 10)
maps = conv(image)
maps.retain_grad()
score = head(maps)[0].max()
score.backward()
weights = maps.grad.mean((2, 3), keepdim=True)
cam = (weights * maps.detach()).sum(1).relu()
print(cam.shape, cam.max().item())
# /// correct gradient_accumulation_loop
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(40, 12), nn.Flatten(), nn.Linear(12 * 5, 40))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
accumulate, micro = 3, torch.randint(0, 40, (9, 4, 6))
opt.zero_grad()
running = 0.0
for i, batch in enumerate(micro, 1):
    logits = model(batch[:, :5])
    loss = nn.functional.cross_entropy(logits, batch[:, 5]) / accumulate
    loss.backward()
    running += loss.item()
    if i % accumulate == 0:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad()
        print(i, running)
        running = 0.0
# /// correct gradient_centralised_custom_optimizer
# ///
import math

import torch
from torch import nn
from torch.optim import Optimizer

torch.manual_seed(0)


class AdamGC(Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                g = p.grad
                if g.dim() > 1:
                    g = g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True)
                st = self.state[p]
                if not st:
                    st["t"], st["m"], st["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                st["t"] += 1
                st["m"].mul_(b1).add_(g, alpha=1 - b1)
                st["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
                lr = group["lr"] * math.sqrt(1 - b2 ** st["t"]) / (1 - b1 ** st["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(st["m"], st["v"].sqrt().add_(group["eps"]), value=-lr)
        return loss


net = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
opt = AdamGC(net.parameters(), lr=5e-3, weight_decay=1e-2)
X = torch.randn(60, 8)
Y = X[:, :3].argmax(1)
for epoch in range(4):
    for i in torch.randperm(60).split(20):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct gradient_penalty_interpolates_and_drift
# ///
import torch
from torch import autograd, nn

torch.manual_seed(0)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 32), nn.ReLU(True), nn.Linear(32, 1))

    def forward(self, x):
        return self.main(x).view(-1)


netG = nn.Sequential(nn.Linear(2, 32), nn.ReLU(True), nn.Linear(32, 2))
netD = Critic()
optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
optimizerG = torch.optim.Adam(netG.parameters(), lr=1e-3, betas=(0.5, 0.9))
one = torch.tensor(1.0)
mone = one * -1


def calc_gradient_penalty(netD, real, fake, lam=0.1):
    alpha = torch.rand(real.size(0), 1).expand(real.size())
    interpolates = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    out = netD(interpolates)
    gradients = autograd.grad(out, interpolates, torch.ones(out.size()), create_graph=True, retain_graph=True, only_inputs=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean() * lam


for iteration in range(4):
    for p in netD.parameters():
        p.requires_grad = True
    for _ in range(2):
        real = torch.randn(32, 2) * 0.1 + torch.tensor([1.0, 0.0])
        netD.zero_grad()
        D_real = netD(real).mean()
        D_real.backward(mone)
        with torch.no_grad():
            fake = netG(torch.randn(32, 2))
        D_fake = netD(fake).mean()
        D_fake.backward(one)
        gp = calc_gradient_penalty(netD, real, fake)
        gp.backward()
        optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    G = netD(netG(torch.randn(32, 2))).mean()
    G.backward(mone)
    optimizerG.step()
    print(iteration, (D_fake - D_real + gp).item(), -G.item())
# /// correct gradnorm_task_weights
# ///
import torch
from torch import nn

torch.manual_seed(5)
shared = nn.Linear(5, 16)
heads = [nn.Linear(16, 1) for _ in range(2)]
weights = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([p for m in (shared, *heads) for p in m.parameters()], lr=1e-2)
weight_opt = torch.optim.Adam([weights], lr=1e-2)
first = None
for step in range(6):
    x = torch.randn(32, 5)
    h = torch.relu(shared(x))
    losses = torch.stack([
        (heads[0](h) - x[:, :1]).pow(2).mean(),
        (heads[1](h) - 10 * x[:, 1:2]).pow(2).mean(),
    ])
    first = losses.detach() if first is None else first
    opt.zero_grad()
    (weights.detach() * losses).sum().backward(retain_graph=True)
    norms = torch.stack([
        torch.autograd.grad(w * l, shared.weight, retain_graph=True, create_graph=True)[0].norm()
        for w, l in zip(weights, losses)
    ])
    ratio = losses.detach() / first
    target = (norms.mean() * (ratio / ratio.mean()).sqrt()).detach()
    weight_opt.zero_grad()
    (weights.grad,) = torch.autograd.grad((norms - target).abs().sum(), [weights])
    opt.step()
    weight_opt.step()
    with torch.no_grad():
        weights.mul_(2 / weights.sum())
print(weights.tolist())
# /// correct group_dro_weights
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
q = torch.ones(3) / 3
eta = 0.1
X = torch.randn(90, 4)
G = torch.randint(0, 3, (90,))
Y = (X[:, 0] + (G == 2) * 0.8 > 0).long()
for epoch in range(3):
    for idx in torch.randperm(90).split(30):
        per = F.cross_entropy(net(X[idx]), Y[idx], reduction="none")
        onehot = F.one_hot(G[idx], 3).float()
        count = onehot.sum(0)
        group = (onehot * per[:, None]).sum(0) / count.clamp(min=1)
        q = q * torch.exp(eta * group.data)
        q = q / q.sum()
        loss = group @ q
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, group.tolist(), q.tolist())
# /// correct gumbel_softmax_discrete_autoencoder
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
enc = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3 * 4))
dec = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 12))
optimizer = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=3e-3)
x_all = (torch.randn(96, 12) > 0).float()
tau = 1.0
for epoch in range(4):
    for i, x in enumerate(x_all.split(32)):
        logits = enc(x).view(-1, 3, 4)
        z = F.gumbel_softmax(logits, tau=tau, hard=True)
        recon = dec(z.flatten(1))
        q = F.softmax(logits, -1)
        kl = (q * (q.clamp_min(1e-9).log() - torch.log(torch.tensor(0.25)))).sum((1, 2)).mean()
        bce = F.binary_cross_entropy_with_logits(recon, x, reduction="none").sum(1).mean()
        loss = bce + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    tau = max(0.5, tau * 0.8)
    print(f"epoch {epoch}: elbo {-loss.item():.3f}, tau {tau:.2f}")
# /// correct hessian_vector_products
# ///
import torch

torch.manual_seed(0)
A = torch.randn(6, 6)
A = A @ A.t() + torch.eye(6)
x = torch.randn(6, requires_grad=True)
(g,) = torch.autograd.grad(0.5 * x @ A @ x + x.pow(4).sum() / 12, x, create_graph=True)
v = torch.randn(6)
for _ in range(4):
    (hv,) = torch.autograd.grad(g, x, v, retain_graph=True)
    v = hv / hv.norm()
(hv,) = torch.autograd.grad(g, x, v)
print((v @ hv).item())
# /// correct heteroscedastic_gaussian_nll
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh())
        self.mean = nn.Linear(24, 1)
        self.var = nn.Sequential(nn.Linear(24, 1), nn.Softplus())

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.var(h) + 1e-6


x = torch.linspace(-3, 3, 120).unsqueeze(1)
y = x.sin() + 0.3 * x.abs() * torch.randn_like(x)
model, crit = Net(), nn.GaussianNLLLoss()
opt = torch.optim.Adam(model.parameters(), 5e-3)
warm = 5
for epoch in range(12):
    mu, var = model(x)
    if epoch < warm:
        loss = (mu - y).pow(2).mean()
    else:
        loss = crit(mu, y, var)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(epoch, "mse" if epoch < warm else "nll", loss.item())
# /// correct hinge_gan_with_spectral_norm
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


class Generator(nn.Module):
    def __init__(self, z=4):
        super().__init__()
        self.z = z
        self.body = nn.Sequential(nn.Linear(z, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))

    def sample(self, n):
        return self.body(torch.randn(n, self.z))


critic = nn.Sequential(spectral_norm(nn.Linear(2, 32)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(32, 1)))
torch.manual_seed(0)
generator = Generator()
optimizers = {
    "g": torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.0, 0.9)),
    "d": torch.optim.Adam(critic.parameters(), lr=2e-3, betas=(0.0, 0.9)),
}
for step in range(6):
    for _ in range(2):
        real = torch.randn(32, 2) * 0.3 + 1
        with torch.no_grad():
            fake = generator.sample(32)
        d_loss = F.relu(1 - critic(real)).mean() + F.relu(1 + critic(fake)).mean()
        optimizers["d"].zero_grad()
        d_loss.backward()
        optimizers["d"].step()
    g_loss = -critic(generator.sample(32)).mean()
    optimizers["g"].zero_grad()
    g_loss.backward()
    optimizers["g"].step()
    print(step, d_loss.item(), g_loss.item())
# /// correct hooks_log_norms_and_mask_gradient
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
mask = (torch.rand_like(net[0].weight) > 0.5).float()
with torch.no_grad():
    net[0].weight.mul_(mask)
net[0].weight.register_hook(lambda g: g * mask)

norms = {}


def recorder(name):
    def hook(module, grad_input, grad_output):
        norms.setdefault(name, []).append(grad_output[0].norm().item())

    return hook


activations = {}
handles = [m.register_full_backward_hook(recorder(n)) for n, m in net.named_modules() if isinstance(m, nn.Linear)]
handles.append(net[1].register_forward_hook(lambda m, i, o: activations.update(relu=o.detach())))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
X, Y = torch.randn(48, 8), torch.randint(0, 4, (48,))
for epoch in range(3):
    for i in range(0, 48, 16):
        loss = nn.functional.cross_entropy(net(X[i : i + 16]), Y[i : i + 16])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), norms["0"][-1], (activations["relu"] == 0).float().mean().item())
for h in handles:
    h.remove()
print("sparsity kept:", bool((net[0].weight[mask == 0] == 0).all()))
# /// correct huber_regression_column_targets
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Housing(Dataset):
    def __init__(self, n=100):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 6, generator=g)
        self.y = (self.x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0, 3.0]) + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)
        self.y[::17] += 20

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
ds = Housing()
train_ds, val_ds = random_split(ds, [80, 20])
train_dl, val_dl = DataLoader(train_ds, 16, shuffle=True), DataLoader(val_ds, 20)
model = nn.Linear(6, 1)
loss_func = nn.HuberLoss(delta=1.0)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_batch(xb, yb, opt=None):
    loss = loss_func(model(xb), yb)
    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), len(xb)


for epoch in range(5):
    model.train()
    for xb, yb in train_dl:
        loss_batch(xb, yb, opt)
    model.eval()
    with torch.no_grad():
        losses, nums = zip(*[loss_batch(xb, yb) for xb, yb in val_dl])
    print(epoch, sum(a * b for a, b in zip(losses, nums)) / sum(nums))
# /// correct hypergradient_of_regularisation
# ///
import torch
from torch import nn

torch.manual_seed(0)
X, Xv = torch.randn(30, 10), torch.randn(30, 10)
w_true = torch.zeros(10)
w_true[:3] = torch.tensor([1.0, -2.0, 1.5])
y, yv = X @ w_true + 0.5 * torch.randn(30), Xv @ w_true + 0.5 * torch.randn(30)
log_lam = torch.full((10,), -2.0, requires_grad=True)
hyper = torch.optim.Adam([log_lam], lr=0.1)
for outer in range(6):
    A = X.T @ X / 30 + torch.diag(log_lam.exp())
    w = torch.linalg.solve(A, X.T @ y / 30)
    val = (Xv @ w - yv).pow(2).mean()
    hyper.zero_grad()
    val.backward()
    hyper.step()
    print(outer, val.item(), log_lam.grad.norm().item())
# /// correct hypernetwork_weights
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Hyper(nn.Module):
    def __init__(self, i=4, o=2, z=3):
        super().__init__()
        self.shape = (o, i)
        self.make = nn.Sequential(nn.Linear(z, 16), nn.ReLU(), nn.Linear(16, o * i + o))

    def forward(self, x, z):
        made = self.make(z)
        o, i = self.shape
        return F.linear(x, made[: o * i].view(o, i), made[o * i :])


tasks = nn.Embedding(3, 3)
hyper = Hyper()
opt = torch.optim.Adam([*hyper.parameters(), *tasks.parameters()], lr=1e-2)
for step in range(9):
    k = torch.tensor(step % 3)
    x = torch.randn(16, 4)
    want = torch.stack([x.sum(1), x[:, int(k)]], 1)
    loss = F.mse_loss(hyper(x, tasks(k)), want)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct infogan_shared_trunk_three_optimizers
# ///
import itertools

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
gen = nn.Sequential(nn.Linear(4 + 3, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 2))
trunk = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.1))
adv, aux = nn.Linear(24, 1), nn.Linear(24, 3)
opt_g = torch.optim.Adam(gen.parameters(), 2e-3)
opt_d = torch.optim.Adam([*trunk.parameters(), *adv.parameters()], 2e-3)
opt_i = torch.optim.Adam(itertools.chain(gen.parameters(), trunk.parameters(), aux.parameters()), 2e-3)


def code(n):
    c = torch.randint(0, 3, (n,))
    return torch.cat([torch.randn(n, 4), F.one_hot(c, 3).float()], 1), c


for it in range(6):
    real = torch.randn(24, 2) + 2
    z, c = code(24)
    fake = gen(z)
    opt_g.zero_grad()
    g = F.binary_cross_entropy_with_logits(adv(trunk(fake)), torch.ones(24, 1))
    g.backward()
    opt_g.step()

    opt_d.zero_grad()
    d = F.binary_cross_entropy_with_logits(adv(trunk(real)), torch.ones(24, 1))
    d = (d + F.binary_cross_entropy_with_logits(adv(trunk(fake.detach())), torch.zeros(24, 1))) / 2
    d.backward()
    opt_d.step()

    opt_i.zero_grad()
    z, c = code(24)
    info = F.cross_entropy(aux(trunk(gen(z))), c)
    info.backward()
    opt_i.step()
    print(it, g.item(), d.item(), info.item())
# /// correct inplace_residual_and_relu_everywhere
# ///
import torch
from torch import nn

torch.manual_seed(0)


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Bottleneck(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = conv(c, c)
        self.b = nn.Sequential(nn.Conv2d(c, c, 3, 1, 1, bias=False), nn.BatchNorm2d(c))
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.b(self.a(x))
        out += x
        return self.act(out)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = conv(3, 8)
        self.body = nn.Sequential(Bottleneck(8), Bottleneck(8))
        self.fc = nn.Linear(8, 5)

    def forward(self, x):
        x = x.mul(2).sub_(1)
        x = self.body(self.stem(x)).mean((-1, -2))
        logits = self.fc(nn.functional.dropout(x, 0.1, self.training, inplace=False))
        logits.div_(0.9)
        return logits


net = Net()
opt = torch.optim.SGD(net.parameters(), 0.05, 0.9)
X, Y = torch.rand(24, 3, 6, 6), torch.randint(0, 5, (24,))
for epoch in range(3):
    for i in range(0, 24, 8):
        out = net(X[i : i + 8])
        loss = nn.functional.cross_entropy(out, Y[i : i + 8])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct invariant_risk_minimisation
# ///
import torch
import torch.nn.functional as F
from torch import autograd, nn

torch.manual_seed(0)


def env(e, n=80):
    y = torch.randint(0, 2, (n, 1)).float()
    color = (y + (torch.rand(n, 1) < e).float()) % 2
    return torch.cat([y + 0.6 * torch.randn(n, 1), color], 1), y


envs = [env(0.1), env(0.2)]
mlp = nn.Sequential(nn.Linear(2, 16), nn.ReLU(True), nn.Linear(16, 1))


def penalty(logits, y):
    scale = torch.tensor(1.0).requires_grad_()
    loss = F.binary_cross_entropy_with_logits(logits * scale, y)
    grad = autograd.grad(loss, [scale], create_graph=True)[0]
    return torch.sum(grad**2)


optimizer = torch.optim.Adam(mlp.parameters(), lr=5e-3)
for step in range(12):
    nll, pen = [], []
    for x, y in envs:
        logits = mlp(x)
        nll.append(F.binary_cross_entropy_with_logits(logits, y))
        pen.append(penalty(logits, y))
    train_nll, train_penalty = torch.stack(nll).mean(), torch.stack(pen).mean()
    weight_norm = torch.tensor(0.0)
    for w in mlp.parameters():
        weight_norm += w.norm().pow(2)
    loss = train_nll.clone()
    loss += 1e-3 * weight_norm
    penalty_weight = 100.0 if step >= 6 else 1.0
    loss += penalty_weight * train_penalty
    if penalty_weight > 1.0:
        loss /= penalty_weight
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, train_nll.item(), train_penalty.item())
# /// correct langevin_energy_model
# ///
import torch
from torch import nn

torch.manual_seed(0)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(64, 2)


def langevin(x, steps=5):
    energy.requires_grad_(False)
    for _ in range(steps):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad(energy(x).sum(), x)
        x = x - 0.1 * g + 0.05 * torch.randn_like(x)
    energy.requires_grad_(True)
    return x.detach()


for step in range(6):
    picked = torch.randint(0, 64, (32,))
    fake = langevin(buffer[picked])
    buffer[picked] = fake
    real = torch.randn(32, 2) + 2
    up, down = energy(real), energy(fake)
    loss = up.mean() - down.mean() + 0.1 * (up.square().mean() + down.square().mean())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct language_model_gradient_accumulation_schedule
# ///
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V, block, micro, accum, max_iters, warmup = 17, 8, 4, 2, 8, 2


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.proj = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1))
        self.register_buffer("mask", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, -1).transpose(1, 2) for t in self.attn(self.ln1(x)).split(C, 2))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf")).softmax(-1)
        x = x + self.proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, d), nn.Embedding(block, d)
        self.h = nn.ModuleList([Block(d, 2), Block(d, 2)])
        self.ln_f, self.lm_head = nn.LayerNorm(d), nn.Linear(d, V, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for b in self.h:
            x = b(x)
        logits = self.lm_head(self.ln_f(x))
        return logits, F.cross_entropy(logits.view(-1, V), targets.view(-1), ignore_index=-1)


def get_lr(it, lr=3e-3, low=3e-4):
    if it < warmup:
        return lr * (it + 1) / (warmup + 1)
    ratio = (it - warmup) / (max_iters - warmup)
    return low + 0.5 * (1 + math.cos(math.pi * ratio)) * (lr - low)


data = (torch.arange(400) ** 2) % V


def get_batch():
    ix = torch.randint(len(data) - block, (micro,))
    return torch.stack([data[i : i + block] for i in ix]), torch.stack([data[i + 1 : i + 1 + block] for i in ix])


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95))
X, Y = get_batch()
for it in range(max_iters):
    for g in optimizer.param_groups:
        g["lr"] = get_lr(it)
    for micro_step in range(accum):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            logits, loss = model(X, Y)
            loss = loss / accum
        X, Y = get_batch()
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(it, loss.item() * accum, optimizer.param_groups[0]["lr"])
# /// correct layer_drop_and_experts
# ///
import random

import torch
from torch import nn

torch.manual_seed(0)
random.seed(1)


class Stochastic(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
        self.gate = nn.Linear(6, 2)
        self.experts = nn.ModuleList(nn.Linear(6, 1) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < 0.3:
                continue
            x = x + torch.relu(layer(x))
        weight = self.gate(x).softmax(-1)
        return sum(weight[:, i : i + 1] * expert(x) for i, expert in enumerate(self.experts))


net = Stochastic()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for x in torch.randn(10, 12, 6):
    opt.zero_grad()
    loss = (net(x).squeeze(1) - x[:, 0]).pow(2).mean()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct layerdrop_random_skip_in_training
# ///
import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)


class LayerDropEncoder(nn.Module):
    def __init__(self, d=8, n=4, p=0.4):
        super().__init__()
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 2, 16, dropout=0.0, batch_first=True) for _ in range(n))
        self.p = p
        self.cls = nn.Linear(d, 2)

    def forward(self, x):
        for layer in self.layers:
            if self.training and random.random() < self.p:
                continue
            x = layer(x)
        return self.cls(x[:, 0])


net = LayerDropEncoder()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
x = torch.randn(24, 5, 8)
y = (x[:, 0, 0] > 0).long()
for step in range(6):
    net.train()
    i = torch.randperm(24)[:12]
    loss = nn.functional.cross_entropy(net(x[i]), y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    print(loss.item(), (net(x).argmax(1) == y).float().mean().item())
# /// correct layerwise_learning_rate_decay
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self, depth=3, d=12):
        super().__init__()
        self.stem = nn.Linear(6, d)
        self.layers = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU()) for _ in range(depth))
        self.head = nn.Linear(d, 3)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def groups(model, base_lr, decay, wd=0.05):
    n = len(model.layers) + 1
    out = {}
    for name, p in model.named_parameters():
        if name.startswith("stem"):
            depth = 0
        elif name.startswith("layers"):
            depth = int(name.split(".")[1]) + 1
        else:
            depth = n
        key = (depth, p.ndim > 1)
        g = out.setdefault(key, {"params": [], "lr": base_lr * decay ** (n - depth), "weight_decay": wd if p.ndim > 1 else 0.0})
        g["params"].append(p)
    return list(out.values())


model = Net()
opt = torch.optim.AdamW(groups(model, 3e-3, 0.7))
warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=3)
cos = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=9)
sched = torch.optim.lr_scheduler.SequentialLR(opt, [warm, cos], milestones=[3])
X = torch.randn(48, 6)
Y = X[:, :3].argmax(1)
for step in range(12):
    i = torch.randint(0, 48, (16,))
    loss = F.cross_entropy(model(X[i]), Y[i])
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
print(loss.item(), [f"{g['lr']:.2e}" for g in opt.param_groups])
# /// correct lbfgs_after_adam
# ///
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 1))
inside = torch.linspace(0, 1, 40).unsqueeze(1).requires_grad_()
edge = torch.tensor([[0.0], [1.0]])


def residual():
    u = net(inside)
    (du,) = torch.autograd.grad(u, inside, torch.ones_like(u), create_graph=True)
    (ddu,) = torch.autograd.grad(du.sum(), inside, create_graph=True)
    return (ddu + torch.sin(3.14159 * inside)).pow(2).mean() + 10 * net(edge).pow(2).mean()


adam = torch.optim.Adam(net.parameters(), lr=5e-3)
for _ in range(8):
    adam.zero_grad()
    loss = residual()
    loss.backward()
    adam.step()

lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = residual()
    value.backward()
    return value


for _ in range(2):
    print(float(lbfgs.step(closure)))
# /// correct lbfgs_curve_fit_closure
# ///
import torch

torch.manual_seed(0)
x = torch.linspace(0, 4, 50)
y = 2.5 * torch.exp(-1.3 * x) + 0.5 + 0.02 * torch.randn(50)
a = torch.tensor(1.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.LBFGS([a, b, c], lr=0.5, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = ((a * torch.exp(-b * x) + c - y) ** 2).mean()
    loss.backward()
    return loss


for epoch in range(5):
    loss = opt.step(closure)
    print(epoch, loss.item())
print(a.item(), b.item(), c.item())
# /// correct lbfgs_logistic_with_l2_and_tracking
# ///
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(100, 5)
y = (X @ torch.tensor([2.0, -1.0, 0.0, 0.5, 1.0]) > 0).float()
model = nn.Linear(5, 1)
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=20, tolerance_grad=1e-6)
losses = []


def closure():
    if torch.is_grad_enabled():
        optimizer.zero_grad()
    out = model(X).squeeze(-1)
    loss = nn.functional.binary_cross_entropy_with_logits(out, y) + 1e-3 * model.weight.square().sum()
    if loss.requires_grad:
        loss.backward()
    losses.append(loss.item())
    return loss


optimizer.step(closure)
with torch.no_grad():
    final = closure()
    acc = ((model(X).squeeze(-1) > 0).float() == y).float().mean()
print(len(losses), losses[0], final.item(), acc.item())
# /// correct learned_optimizer_unrolled
# ///
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
# /// correct lightning_like_manual_optimisation
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class AdversarialAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, 3), nn.Linear(3, 12)
        self.disc = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def configure_optimizers(self):
        return (
            torch.optim.Adam([*self.enc.parameters(), *self.dec.parameters()], lr=2e-3),
            torch.optim.Adam(self.disc.parameters(), lr=1e-3),
            torch.optim.Adam(self.enc.parameters(), lr=5e-4),
        )

    def training_step(self, x, opts):
        ae, d, g = opts
        # reconstruction
        rec = F.mse_loss(self.dec(self.enc(x)), x)
        ae.zero_grad()
        rec.backward()
        ae.step()
        # discriminator on the code
        with torch.no_grad():
            code = self.enc(x)
        prior = torch.randn_like(code)
        d_loss = F.softplus(-self.disc(prior)).mean() + F.softplus(self.disc(code)).mean()
        d.zero_grad()
        d_loss.backward()
        d.step()
        # fool it
        g_loss = F.softplus(-self.disc(self.enc(x))).mean()
        g.zero_grad()
        g_loss.backward()
        g.step()
        return {"rec": rec.item(), "d": d_loss.item(), "g": g_loss.item()}


module = AdversarialAutoencoder()
opts = module.configure_optimizers()
for step in range(6):
    print(step, module.training_step(torch.randn(32, 12), opts))
# /// correct linear_probe_on_frozen_batchnorm
# ///
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
backbone.requires_grad_(False)
backbone.eval()
probe = nn.Linear(4, 3)
opt = torch.optim.LBFGS(probe.parameters(), lr=0.5, max_iter=5)
x, y = torch.rand(30, 1, 8, 8), torch.randint(0, 3, (30,))
with torch.no_grad():
    features = backbone(x)


def closure():
    opt.zero_grad()
    loss = nn.functional.cross_entropy(probe(features), y)
    loss.backward()
    return loss


for _ in range(3):
    print(opt.step(closure).item())
# /// correct linear_warmup_then_inverse_sqrt_by_hand
# ///
import torch
from torch import nn

torch.manual_seed(0)


class NoamOpt:
    def __init__(self, model_size, factor, warmup, optimizer):
        self.optimizer, self._step, self.warmup = optimizer, 0, warmup
        self.factor, self.model_size, self._rate = factor, model_size, 0

    def step(self):
        self._step += 1
        rate = self.rate()
        for p in self.optimizer.param_groups:
            p["lr"] = rate
        self._rate = rate
        self.optimizer.step()

    def rate(self, step=None):
        step = self._step if step is None else step
        return self.factor * (self.model_size ** (-0.5) * min(step ** (-0.5), step * self.warmup ** (-1.5)))


model = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
out = nn.Linear(16, 5)
params = [*model.parameters(), *out.parameters()]
opt = NoamOpt(16, 1.0, 40, torch.optim.Adam(params, lr=0, betas=(0.9, 0.98), eps=1e-9))
for step in range(10):
    x = torch.randn(4, 6, 16)
    y = x[..., :5].argmax(-1)
    logits = out(model(x))
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), y)
    loss.backward()
    opt.step()
    opt.optimizer.zero_grad()
    print(step, loss.item(), opt._rate)
# /// correct lion_with_decoupled_decay_by_functions
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 20), nn.GELU(), nn.Linear(20, 1))
momentum = {p: torch.zeros_like(p) for p in net.parameters()}


@torch.no_grad()
def lion_step(params, lr=1e-3, b1=0.9, b2=0.99, wd=0.01):
    for p in params:
        g, m = p.grad, momentum[p]
        update = (b1 * m + (1 - b1) * g).sign_()
        p.mul_(1 - lr * wd).add_(update, alpha=-lr)
        m.lerp_(g, 1 - b2)
        p.grad = None


x = torch.randn(64, 5)
y = x[:, :1].abs()
for epoch in range(4):
    for xb, yb in zip(x.split(16), y.split(16)):
        loss = nn.functional.l1_loss(net(xb), yb)
        loss.backward()
        lion_step(net.parameters())
    print(epoch, loss.item())
# /// correct lm_tied_weights_padding_ignored
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
PAD, V = 0, 20


class TinyGPT(nn.Module):
    def __init__(self, d=16, ctx=12):
        super().__init__()
        self.tok = nn.Embedding(V, d, padding_idx=PAD)
        self.pos = nn.Embedding(ctx, d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ln1, self.ln2, self.lnf = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.head = nn.Linear(d, V, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, 0.0, 0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, 2, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, -1))
        x = x + self.mlp(self.ln2(x))
        logits = self.head(self.lnf(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, V), targets.reshape(-1), ignore_index=PAD)
        return logits, loss


def batch():
    rows = torch.zeros(6, 11, dtype=torch.long)
    for r in rows:
        n = int(torch.randint(5, 12, ()))
        r[:n] = (torch.arange(n) * 3 + int(torch.randint(1, 10, ()))) % (V - 1) + 1
    return rows[:, :-1], rows[:, 1:]


model = TinyGPT()
decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
nodecay = [p for n, p in model.named_parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
for it in range(10):
    x, y = batch()
    _, loss = model(x, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    print(it, round(loss.item(), 3), round(norm.item(), 3))
model.eval()
ctx = torch.tensor([[4]])
with torch.no_grad():
    for _ in range(5):
        probs = model(ctx)[0][:, -1].softmax(-1)
        ctx = torch.cat([ctx, torch.multinomial(probs, 1)], 1)
print(ctx.tolist())
# /// correct lookahead_wrapper
# ///
from collections import defaultdict

import torch
from torch import nn

torch.manual_seed(0)


class Lookahead:
    def __init__(self, optimizer, k=5, alpha=0.5):
        self.optimizer, self.k, self.alpha = optimizer, k, alpha
        self.counter = 0
        self.slow = defaultdict(dict)
        for group in optimizer.param_groups:
            for p in group["params"]:
                self.slow[p] = p.detach().clone()

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()
        self.counter += 1
        if self.counter % self.k == 0:
            for group in self.param_groups:
                for p in group["params"]:
                    slow = self.slow[p]
                    slow += self.alpha * (p.data - slow)
                    p.data.copy_(slow)


model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
opt = Lookahead(torch.optim.Adam(model.parameters(), lr=1e-2), k=4)
x = torch.linspace(-1, 1, 64).view(16, 4)
y = torch.sin(3 * x.sum(1, keepdim=True))
history = []
for it in range(16):
    loss = (model(x) - y).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.detach())
print(torch.stack(history))
# /// correct lora_merge_and_unmerge
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, r=4, alpha=8):
        super().__init__()
        self.base, self.scale, self.merged = base, alpha / r, False
        for p in base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.empty(r, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, r))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))

    def train(self, mode=True):
        super().train(mode)
        if mode and self.merged:
            self.base.weight.data -= self.scale * (self.B @ self.A).data
            self.merged = False
        if not mode and not self.merged:
            self.base.weight.data += self.scale * (self.B @ self.A).data
            self.merged = True
        return self

    def forward(self, x):
        y = self.base(x)
        return y if self.merged else y + self.scale * (x @ self.A.T @ self.B.T)


backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
X, Y = torch.randn(64, 8), torch.randn(64, 1)
pre = torch.optim.Adam(backbone.parameters(), 1e-2)
for _ in range(5):
    pre.zero_grad()
    nn.functional.mse_loss(backbone(X), Y).backward()
    pre.step()

model = nn.Sequential(LoRALinear(backbone[0]), backbone[1], LoRALinear(backbone[2]))
trainable = [p for p in model.parameters() if p.requires_grad]
print(sum(p.numel() for p in trainable), "of", sum(p.numel() for p in model.parameters()))
opt = torch.optim.AdamW(trainable, lr=5e-3)
Y2 = Y + X[:, :1]
for epoch in range(4):
    model.train()
    for xb, yb in zip(X.split(16), Y2.split(16)):
        opt.zero_grad()
        loss = (model(xb) - yb).square().mean()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, nn.functional.mse_loss(model(X), Y2).item())
# /// correct lora_on_frozen_linear
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)


class LoRA(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()


net = nn.Sequential(LoRA(nn.Linear(6, 10)), nn.GELU(), LoRA(nn.Linear(10, 3)))
trainable = [p for p in net.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-2)
for x in torch.randn(5, 14, 6):
    loss = nn.functional.cross_entropy(net(x), torch.randint(0, 3, (14,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(len(trainable), loss.item())
# /// correct lsgan_with_label_tensors_and_replay
# ///
import random

import torch
from torch import nn

random.seed(1)
torch.manual_seed(1)


class ReplayPool:
    def __init__(self, size):
        self.size, self.items = size, []

    def query(self, batch):
        out = []
        for item in batch.detach():
            if len(self.items) < self.size:
                self.items.append(item.clone())
                out.append(item)
            elif random.random() > 0.5:
                k = random.randrange(self.size)
                out.append(self.items[k].clone())
                self.items[k] = item.clone()
            else:
                out.append(item)
        return torch.stack(out)


G = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.InstanceNorm2d(8), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1), nn.Tanh())
D = nn.Sequential(nn.Conv2d(1, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 3, 1, 1))
mse, l1 = nn.MSELoss(), nn.L1Loss()
og = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999))
od = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999))
pool = ReplayPool(12)
for step in range(5):
    a = torch.rand(4, 1, 8, 8) * 2 - 1
    b = -a.flip(-1)
    # generator
    for p in D.parameters():
        p.requires_grad = False
    og.zero_grad()
    fake = G(a)
    pred = D(fake)
    valid = torch.ones_like(pred)
    loss_g = mse(pred, valid) + 10 * l1(fake, b)
    loss_g.backward()
    og.step()
    # discriminator
    for p in D.parameters():
        p.requires_grad = True
    od.zero_grad()
    loss_d = 0.5 * (mse(D(b), torch.ones(4, 1, 4, 4)) + mse(D(pool.query(fake)), torch.zeros(4, 1, 4, 4)))
    loss_d.backward()
    od.step()
    print(f"[{step}] G {loss_g.item():.3f} D {loss_d.item():.3f}")
# /// correct magnitude_pruning_and_retrain
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 3))
X = torch.randn(90, 10)
Y = X[:, :3].argmax(1)


def fit(epochs, lr):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for i in torch.randperm(90).split(30):
            opt.zero_grad()
            F.cross_entropy(model(X[i]), Y[i]).backward()
            opt.step()
    with torch.no_grad():
        return (model(X).argmax(1) == Y).float().mean().item()


print("dense", fit(3, 1e-2))
for round in range(2):
    for m in model:
        if isinstance(m, nn.Linear):
            prune.l1_unstructured(m, "weight", amount=0.4)
    print("pruned", round, fit(2, 5e-3))
for m in model:
    if isinstance(m, nn.Linear):
        prune.remove(m, "weight")
zero = sum((m.weight == 0).sum().item() for m in model if isinstance(m, nn.Linear))
print(zero)
# /// correct maml_second_order
# ///
import torch

torch.manual_seed(0)
theta = {"w": torch.randn(1, 8, requires_grad=True), "b": torch.zeros(8, requires_grad=True), "v": torch.randn(8, 1, requires_grad=True)}
meta = torch.optim.SGD(theta.values(), lr=1e-2)


def model(p, x):
    return torch.tanh(x @ p["w"] + p["b"]) @ p["v"]


for outer in range(3):
    meta.zero_grad()
    for task in range(2):
        phase = torch.rand(1) * 3
        x, x2 = torch.rand(10, 1), torch.rand(10, 1)
        inner = (model(theta, x) - torch.sin(x + phase)).pow(2).mean()
        grads = torch.autograd.grad(inner, list(theta.values()), create_graph=True)
        fast = {name: p - 0.1 * g for (name, p), g in zip(theta.items(), grads)}
        ((model(fast, x2) - torch.sin(x2 + phase)).pow(2).mean() / 2).backward()
    meta.step()
    print(outer, theta["b"].norm().item())
# /// correct maml_with_functional_call
# ///
import torch
from torch import nn
from torch.func import functional_call

torch.manual_seed(0)
learner = nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))
outer = torch.optim.Adam(learner.parameters(), lr=1e-3)


def task():
    scale, phase = torch.rand(1) * 2 + 0.5, torch.rand(1) * 3
    x = torch.rand(20, 1) * 6 - 3
    y = scale * torch.sin(x + phase)
    return (x[:10], y[:10]), (x[10:], y[10:])


def adapt(support, steps=2, rate=0.05):
    fast = dict(learner.named_parameters())
    x, y = support
    for _ in range(steps):
        loss = nn.functional.mse_loss(functional_call(learner, fast, (x,)), y)
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
        fast = {name: value - rate * grad for (name, value), grad in zip(fast.items(), grads)}
    return fast


for step in range(4):
    outer.zero_grad()
    losses = []
    for _ in range(3):
        support, (xq, yq) = task()
        fast = adapt(support)
        losses.append(nn.functional.mse_loss(functional_call(learner, fast, (xq,)), yq))
    meta = torch.stack(losses).mean()
    meta.backward()
    outer.step()
    print(step, meta.item())
# /// correct manual_logistic_regression
# ///
import torch

torch.manual_seed(0)
X = torch.cat([torch.randn(30, 2) - 1, torch.randn(30, 2) + 1])
y = torch.cat([torch.zeros(30), torch.ones(30)])
w = torch.zeros(2, requires_grad=True)
b = torch.zeros((), requires_grad=True)
rate = 0.5
for epoch in range(8):
    p = torch.sigmoid(X @ w + b)
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    loss.backward()
    with torch.no_grad():
        w -= rate * w.grad
        b -= rate * b.grad
        w.grad.zero_()
        b.grad = None
print(w.tolist(), b.item(), loss.item())
# /// correct masked_attention_padding
# ///
import torch
from torch import nn

torch.manual_seed(0)
embed, attend, out = nn.Embedding(12, 8, padding_idx=0), nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 2)
opt = torch.optim.Adam([*embed.parameters(), *attend.parameters(), *out.parameters()], lr=1e-2)
for _ in range(4):
    tokens = torch.randint(1, 12, (6, 7))
    lengths = torch.randint(2, 8, (6,))
    pad = torch.arange(7)[None] >= lengths[:, None]
    tokens = tokens.masked_fill(pad, 0)
    h = embed(tokens)
    mixed, _ = attend(h, h, h, key_padding_mask=pad, need_weights=False)
    pooled = mixed.masked_fill(pad[..., None], 0).sum(1) / lengths[:, None]
    loss = nn.functional.cross_entropy(out(pooled), tokens[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct mc_dropout_predictive_entropy
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
X = torch.randn(90, 4)
Y = X[:, :3].argmax(1)
for epoch in range(4):
    net.train()
    for i in torch.randperm(90).split(30):
        opt.zero_grad()
        F.cross_entropy(net(X[i]), Y[i]).backward()
        opt.step()


def predict(x, passes=10):
    net.eval()
    for m in net.modules():
        if m.__class__.__name__.startswith("Dropout"):
            m.train()
    with torch.no_grad():
        p = torch.stack([net(x).softmax(-1) for _ in range(passes)])
    mean = p.mean(0)
    total = -(mean * mean.clamp_min(1e-12).log()).sum(-1)
    aleatoric = -(p * p.clamp_min(1e-12).log()).sum(-1).mean(0)
    return mean, total - aleatoric


mean, epistemic = predict(torch.randn(10, 4) * 3)
print(mean.argmax(-1), epistemic)
# /// correct mc_dropout_uncertainty
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 20), nn.ReLU(), nn.Dropout(0.3), nn.Linear(20, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(6, 20, 3):
    opt.zero_grad()
    (net(x).squeeze(1) - x.sum(1)).pow(2).mean().backward()
    opt.step()
query = torch.randn(5, 3)
with torch.no_grad():
    draws = torch.stack([net(query) for _ in range(12)])
print(draws.mean(0).squeeze(1), draws.std(0).squeeze(1))
# /// correct mean_teacher_consistency
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
student = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 3))
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.detach_()
opt = torch.optim.Adam(student.parameters(), lr=3e-3)
for step in range(8):
    labelled, plain = torch.randn(12, 6), torch.randn(24, 6)
    target = labelled[:, :3].argmax(1)
    with torch.no_grad():
        belief = F.softmax(teacher(plain + 0.1 * torch.randn_like(plain)), dim=1)
    ramp = min(1.0, step / 5)
    loss = F.cross_entropy(student(labelled), target)
    loss = loss + ramp * F.mse_loss(F.softmax(student(plain), dim=1), belief)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for ours, theirs in zip(teacher.state_dict().values(), student.state_dict().values()):
            if ours.dtype.is_floating_point:
                ours.mul_(0.95).add_(theirs, alpha=0.05)
print(loss.item())
# /// correct missing_values_masked_before_use
# ///
import torch
from torch import nn

torch.manual_seed(0)
X = torch.randn(100, 6)
Y = X @ torch.tensor([[1.0], [0.5], [0.0], [-1.0], [2.0], [0.0]])
X[torch.rand_like(X) < 0.15] = float("nan")
Y[torch.rand_like(Y) < 0.1] = float("nan")
observed = ~X.isnan()
mean = torch.nanmean(X, 0)
filled = torch.where(observed, X, mean)
features = torch.cat([filled, observed.float()], 1)
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    for idx in torch.randperm(100).split(25):
        y = Y[idx]
        known = ~y.isnan()
        pred = model(features[idx])
        err = (pred[known] - y[known]).pow(2)
        loss = err.sum() / known.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct mixture_density_network
# ///
import torch
from torch import nn
from torch.distributions import Categorical, MixtureSameFamily, Normal

torch.manual_seed(0)


class MDN(nn.Module):
    def __init__(self, k=4, h=24):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(1, h), nn.Tanh())
        self.pi, self.mu, self.sigma = nn.Linear(h, k), nn.Linear(h, k), nn.Linear(h, k)

    def forward(self, x):
        h = self.h(x)
        return MixtureSameFamily(Categorical(logits=self.pi(h)), Normal(self.mu(h), self.sigma(h).exp().clamp_min(1e-3)))


t = torch.rand(200) * 10 - 5
data = 7 * torch.sin(0.75 * t) + 0.5 * t + 0.3 * torch.randn(200)
x, y = (data / 10).unsqueeze(1), t / 5
net = MDN()
opt = torch.optim.Adam(net.parameters(), lr=2e-2)
for step in range(15):
    loss = -net(x).log_prob(y).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if not step % 5:
        print(step, loss.item())
with torch.no_grad():
    print(net(torch.zeros(3, 1)).sample((2,)).shape)
# /// correct mixup_and_cutmix
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
beta = Beta(torch.tensor(0.4), torch.tensor(0.4))
X, Y = torch.rand(48, 1, 8, 8), torch.randint(0, 3, (48,))


def mixup(x, y):
    lam = beta.sample().item()
    perm = torch.randperm(len(x))
    return lam * x + (1 - lam) * x[perm], y, y[perm], lam


def cutmix(x, y):
    lam = beta.sample().item()
    perm = torch.randperm(len(x))
    r = int(8 * (1 - lam) ** 0.5)
    i, j = torch.randint(0, 8 - r + 1, (2,)).tolist() if r < 8 else (0, 0)
    x = x.clone()
    x[:, :, i : i + r, j : j + r] = x[perm][:, :, i : i + r, j : j + r]
    return x, y, y[perm], 1 - r * r / 64


for epoch in range(3):
    correct = 0.0
    for k, idx in enumerate(torch.randperm(48).split(12)):
        x, ya, yb, lam = (mixup if k % 2 else cutmix)(X[idx], Y[idx])
        out = net(x)
        loss = lam * F.cross_entropy(out, ya) + (1 - lam) * F.cross_entropy(out, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        pred = out.argmax(1)
        correct += lam * (pred == ya).sum().item() + (1 - lam) * (pred == yb).sum().item()
    print(epoch, loss.item(), correct / 48)
# /// correct mixup_soft_targets_one_hot
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
K = 4
net = nn.Sequential(nn.Linear(10, 32), nn.Mish(), nn.Linear(32, K))
opt = torch.optim.AdamW(net.parameters(), lr=3e-3)
X = torch.randn(64, 10)
Y = X[:, :K].argmax(1)


def soft_ce(logits, target):
    return -(target * logits.log_softmax(-1)).sum(-1).mean()


for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        x, y = X[idx], F.one_hot(Y[idx], K).float()
        y = y * 0.9 + 0.1 / K
        lam = torch.distributions.Beta(0.3, 0.3).sample()
        x, y = lam * x + (1 - lam) * x.flip(0), lam * y + (1 - lam) * y.flip(0)
        loss = soft_ce(net(x), y)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
    print(epoch, loss.item(), (net(X).argmax(-1) == Y).float().mean().item())
# /// correct moco_momentum_queue_module
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class MoCo(nn.Module):
    def __init__(self, make, dim=8, K=32, m=0.99, T=0.1):
        super().__init__()
        self.K, self.m, self.T = K, m, T
        self.encoder_q, self.encoder_k = make(), make()
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data.copy_(param_q.data)
            param_k.requires_grad = False
        self.register_buffer("queue", F.normalize(torch.randn(dim, K), dim=0))
        self.register_buffer("queue_ptr", torch.zeros(1, dtype=torch.long))

    @torch.no_grad()
    def _momentum_update(self):
        for param_q, param_k in zip(self.encoder_q.parameters(), self.encoder_k.parameters()):
            param_k.data = param_k.data * self.m + param_q.data * (1.0 - self.m)

    @torch.no_grad()
    def _enqueue(self, keys):
        ptr = int(self.queue_ptr)
        self.queue[:, ptr : ptr + keys.shape[0]] = keys.T
        self.queue_ptr[0] = (ptr + keys.shape[0]) % self.K

    def forward(self, im_q, im_k):
        q = F.normalize(self.encoder_q(im_q), dim=1)
        with torch.no_grad():
            self._momentum_update()
            idx = torch.randperm(im_k.shape[0])
            k = F.normalize(self.encoder_k(im_k[idx]), dim=1)[torch.argsort(idx)]
        l_pos = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
        l_neg = torch.einsum("nc,ck->nk", [q, self.queue.clone().detach()])
        logits = torch.cat([l_pos, l_neg], dim=1) / self.T
        self._enqueue(k)
        return logits, torch.zeros(logits.shape[0], dtype=torch.long)


model = MoCo(lambda: nn.Sequential(nn.Linear(10, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)))
opt = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
model.train()
for step in range(8):
    x = torch.randn(8, 10)
    output, target = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    loss = criterion(output, target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), int(model.queue_ptr))
# /// correct moco_queue
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
query_net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(inplace=True), nn.Linear(32, 8))
key_net = copy.deepcopy(query_net)
for p in key_net.parameters():
    p.requires_grad = False
queue = F.normalize(torch.randn(8, 64), dim=0)
pointer = 0
opt = torch.optim.SGD(query_net.parameters(), lr=0.03, momentum=0.9)
for step in range(6):
    x = torch.randn(16, 8)
    q = F.normalize(query_net(x + 0.1 * torch.randn_like(x)), dim=1)
    with torch.no_grad():
        for pq, pk in zip(query_net.parameters(), key_net.parameters()):
            pk.data = pk.data * 0.99 + pq.data * 0.01
        k = F.normalize(key_net(x + 0.1 * torch.randn_like(x)), dim=1)
    positive = torch.einsum("nc,nc->n", [q, k]).unsqueeze(-1)
    negative = torch.einsum("nc,ck->nk", [q, queue.clone().detach()])
    loss = F.cross_entropy(torch.cat([positive, negative], 1) / 0.2, torch.zeros(16, dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[:, pointer : pointer + 16] = k.T
    pointer = (pointer + 16) % 64
print(loss.item())
# /// correct multi_task_uncertainty_weighting
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(6, 16), nn.ReLU())
        self.heads = nn.ModuleDict({"age": nn.Linear(16, 1), "kind": nn.Linear(16, 4)})
        self.log_var = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


net = Shared()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for x in torch.randn(5, 20, 6):
    out = net(x)
    losses = torch.stack([
        nn.functional.l1_loss(out["age"].squeeze(1), x.sum(1)),
        nn.functional.cross_entropy(out["kind"], torch.randint(0, 4, (20,))),
    ])
    total = (losses * torch.exp(-net.log_var) + net.log_var).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
    print({k: round(v, 3) for k, v in zip(net.heads, losses.tolist())})
# /// correct neural_ode_adjoint
# ///
import torch
from torch import nn


def rk4(f, y, t0, t1, steps):
    h = (t1 - t0) / steps
    t = t0
    for _ in range(steps):
        k1 = f(t, y)
        k2 = f(t + h / 2, [a + h / 2 * k for a, k in zip(y, k1)])
        k3 = f(t + h / 2, [a + h / 2 * k for a, k in zip(y, k2)])
        k4 = f(t + h, [a + h * k for a, k in zip(y, k3)])
        y = [a + h / 6 * (p + 2 * q + 2 * r + s) for a, p, q, r, s in zip(y, k1, k2, k3, k4)]
        t = t + h
    return y


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, field, y0, *params):
        with torch.no_grad():
            (y1,) = rk4(lambda t, y: [field(t, y[0])], [y0], 0.0, 1.0, 4)
        ctx.field = field
        ctx.save_for_backward(y1, *params)
        return y1

    @staticmethod
    def backward(ctx, grad):
        y1, *params = ctx.saved_tensors

        def augmented(t, state):
            y, a = state[0], state[1]
            with torch.enable_grad():
                y = y.detach().requires_grad_()
                out = ctx.field(t, y)
                gy, *gp = torch.autograd.grad(out, (y, *params), -a, allow_unused=True)
            gp = [torch.zeros_like(p) if g is None else g for p, g in zip(params, gp)]
            return [out.detach(), gy, *gp]

        start = [y1, grad, *(torch.zeros_like(p) for p in params)]
        _, gy, *gp = rk4(augmented, start, 1.0, 0.0, 4)
        return None, gy, *gp


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 2))

    def forward(self, t, y):
        return self.net(torch.cat([y, torch.full_like(y[:, :1], t)], dim=1))


torch.manual_seed(0)
field = Field()
readout = nn.Linear(2, 1)
opt = torch.optim.Adam([*field.parameters(), *readout.parameters()], lr=5e-3)
for _ in range(3):
    y0 = torch.randn(20, 2)
    y1 = Adjoint.apply(field, y0, *field.parameters())
    loss = nn.functional.binary_cross_entropy_with_logits(readout(y1).squeeze(1), (y0.prod(1) > 0).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
# /// correct neural_ode_rk4_by_hand
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(f, y, ts):
    out = [y]
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h / 2 * k1)
        k3 = f(t0 + h / 2, y + h / 2 * k2)
        k4 = f(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out.append(y)
    return torch.stack(out)


A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0.0, 2.0, 30)
with torch.no_grad():
    true_y = rk4(lambda _, y: y**3 @ A, torch.tensor([[2.0, 0.0]]), t)
func = Field()
opt = torch.optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(1, 5):
    start = torch.randint(0, 20, (8,))
    y0 = true_y[start, 0]
    target = torch.stack([true_y[start + i, 0] for i in range(6)])
    opt.zero_grad()
    pred = rk4(func, y0, t[:6])
    loss = torch.mean(torch.abs(pred - target))
    loss.backward()
    opt.step()
    print(f"Iter {itr:02d} | Total Loss {loss.item():.6f}")
# /// correct neural_style_optimised_input
# ///
import torch
from torch import nn

torch.manual_seed(0)
extractor = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval().requires_grad_(False)
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12)


def gram(f):
    c = f.flatten(2)
    return c @ c.transpose(1, 2) / c.numel()


with torch.no_grad():
    want_content, want_style = extractor(content), gram(extractor(style))
image = content.clone().requires_grad_()
opt = torch.optim.LBFGS([image], max_iter=4)
trace = []


def closure():
    opt.zero_grad()
    f = extractor(image)
    loss = (f - want_content).pow(2).mean() + 100 * (gram(f) - want_style).pow(2).mean()
    loss.backward()
    trace.append(loss.item())
    return loss


for _ in range(2):
    opt.step(closure)
print(trace[0], trace[-1])
# /// correct noisy_labels_co_teaching
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
nets = [nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3)) for _ in range(2)]
opts = [torch.optim.Adam(n.parameters(), lr=5e-3) for n in nets]
X = torch.randn(120, 6)
clean = X[:, :3].argmax(1)
noisy = torch.where(torch.rand(120) < 0.3, torch.randint(0, 3, (120,)), clean)
for epoch in range(3):
    remember = 1 - min(epoch / 2 * 0.3, 0.3)
    for idx in torch.randperm(120).split(40):
        a, b = (F.cross_entropy(n(X[idx]), noisy[idx], reduction="none") for n in nets)
        k = int(remember * len(idx))
        pick_a, pick_b = torch.argsort(a.data)[:k], torch.argsort(b.data)[:k]
        la = F.cross_entropy(nets[0](X[idx][pick_b]), noisy[idx][pick_b])
        lb = F.cross_entropy(nets[1](X[idx][pick_a]), noisy[idx][pick_a])
        for o, l in zip(opts, (la, lb)):
            o.zero_grad()
            l.backward()
            o.step()
    with torch.no_grad():
        print(epoch, [(n(X).argmax(1) == clean).float().mean().item() for n in nets])
# /// correct notebook_like_regression
# ///
# %% data
import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 60).unsqueeze(1)
y = x.pow(3) - x + 0.1 * torch.randn_like(x)
# %% model
model = nn.Sequential(nn.Linear(1, 24), nn.SiLU(), nn.Linear(24, 1))
model
# %% train
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
losses = []
for i in range(12):
    pred = model(x)
    loss = ((pred - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(float(loss.detach()))
# %% look
model.eval()
with torch.no_grad():
    fit = model(x)
curve = fit.squeeze(1).numpy()
print(curve.max(), losses[0] > losses[-1])
# /// correct numpy_free_matrix_factorisation_by_hand
# ///
import torch

torch.manual_seed(0)
R = torch.randn(15, 3) @ torch.randn(3, 10)
mask = torch.rand(15, 10) < 0.7
U = torch.randn(15, 3).mul_(0.1).requires_grad_()
V = torch.randn(10, 3).mul_(0.1).requires_grad_()
lr, reg = 0.02, 0.01
for epoch in range(40):
    pred = U @ V.T
    loss = ((pred - R)[mask] ** 2).sum() + reg * (U.norm() ** 2 + V.norm() ** 2)
    loss.backward()
    with torch.no_grad():
        U -= lr * U.grad
        V -= lr * V.grad
        U.grad = None
        V.grad.zero_()
    if epoch % 10 == 0:
        print(epoch, loss.item())
# /// correct one_cycle_with_momentum_per_batch
# ///
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train = DataLoader(TensorDataset(torch.randn(80, 1, 8, 8), torch.randint(0, 4, (80,))), batch_size=16, shuffle=True, drop_last=True)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4)
)
epochs = 3
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.2, steps_per_epoch=len(train), epochs=epochs, pct_start=0.3)
lrs = []
for epoch in range(epochs):
    net.train()
    seen = right = 0
    for x, y in train:
        opt.zero_grad()
        out = net(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        lrs.append(sched.get_last_lr()[0])
        sched.step()
        right += out.detach().argmax(1).eq(y).sum().item()
        seen += y.numel()
    print(epoch, loss.item(), right / seen)
print([round(v, 4) for v in lrs])
# /// correct optimizer_in_backward_hooks
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
per_parameter = {p: torch.optim.Adam([p], lr=1e-2) for p in model.parameters()}


def step_now(p):
    per_parameter[p].step()
    per_parameter[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(step_now)

for i in range(8):
    x = torch.randn(24, 6)
    loss = (model(x) - x.prod(1, keepdim=True)).square().mean()
    loss.backward()
print(loss.item())
# /// correct packed_gru_masked_mean_pool
# ///
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

torch.manual_seed(0)


class SentimentGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 10, padding_idx=0)
        self.gru = nn.GRU(10, 12, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(24, 1)

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.emb(ids), lengths, batch_first=True, enforce_sorted=False)
        out, _ = self.gru(packed)
        out, n = pad_packed_sequence(out, batch_first=True)
        mask = (torch.arange(out.size(1))[None] < n[:, None]).unsqueeze(-1)
        pooled = (out * mask).sum(1) / n[:, None]
        return self.fc(pooled).squeeze(1)


def collate(k):
    seqs = [torch.randint(1, 30, (int(torch.randint(2, 9, ())),)) for _ in range(k)]
    y = torch.tensor([float(s.float().mean() > 15) for s in seqs])
    return pad_sequence(seqs, batch_first=True), torch.tensor([len(s) for s in seqs]), y


model = SentimentGRU()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(8):
    ids, lengths, y = collate(12)
    logits = model(ids, lengths)
    loss = loss_fn(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), ((logits > 0).float() == y).float().mean().item())
# /// correct packed_lstm_classifier
# ///
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Words(Dataset):
    def __init__(self, n):
        self.rows = [torch.randint(1, 30, (int(k),)) for k in torch.randint(3, 9, (n,))]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return row, int((row > 15).float().mean() > 0.5)


def collate(batch):
    rows, labels = zip(*batch)
    lengths = torch.tensor([len(r) for r in rows])
    return pad_sequence(rows, batch_first=True), lengths, torch.tensor(labels, dtype=torch.float32)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 16, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(32, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.out(self.drop(torch.cat([hidden[-2], hidden[-1]], dim=1))).squeeze(1)


def run(model, loader, optimizer=None):
    model.train(optimizer is not None)
    correct = total = 0
    with torch.set_grad_enabled(optimizer is not None):
        for tokens, lengths, labels in loader:
            logits = model(tokens, lengths)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            correct += ((logits > 0).float() == labels).sum().item()
            total += len(labels)
    return correct / total


model = Classifier()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
train = DataLoader(Words(64), batch_size=16, shuffle=True, collate_fn=collate)
test = DataLoader(Words(32), batch_size=16, collate_fn=collate)
for epoch in range(3):
    print(epoch, run(model, train, optimizer), run(model, test))
# /// correct parameter_list_polynomial_features
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Poly(nn.Module):
    def __init__(self, degree=3):
        super().__init__()
        self.coef = nn.ParameterList([nn.Parameter(torch.randn(1) * 0.1) for _ in range(degree + 1)])
        self.scales = nn.ParameterDict({"in": nn.Parameter(torch.ones(1)), "out": nn.Parameter(torch.ones(1))})
        self.register_buffer("shift", torch.tensor([0.5]))

    def forward(self, x):
        x = (x - self.shift) * self.scales["in"]
        y = 0
        for k, c in enumerate(self.coef):
            y = y + c * x**k
        return y * self.scales["out"]


x = torch.linspace(-1, 2, 64)
y = x**3 - 2 * x
model = Poly()
opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(20):
    loss = ((model(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), [round(c.item(), 3) for c in model.coef], model.state_dict().keys())
# /// correct parameter_tree_functional
# ///
import torch


def init(key, sizes):
    gen = torch.Generator().manual_seed(key)
    return [
        {"w": torch.randn(a, b, generator=gen).div_(a**0.5).requires_grad_(), "b": torch.zeros(b, requires_grad=True)}
        for a, b in zip(sizes, sizes[1:])
    ]


def tree_map(fn, *trees):
    return [{key: fn(*(tree[at][key] for tree in trees)) for key in layer} for at, layer in enumerate(trees[0])]


def leaves(tree):
    return [value for layer in tree for value in layer.values()]


def unflatten(tree, values):
    values = iter(values)
    return [{key: next(values) for key in layer} for layer in tree]


def apply(params, x):
    *hidden, last = params
    for layer in hidden:
        x = torch.tanh(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params, batch):
    x, y = batch
    return torch.mean((apply(params, x) - y) ** 2)


def adam_update(params, grads, m, v, t, lr=0.01, b1=0.9, b2=0.99):
    m = tree_map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = tree_map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)

    def moved(p, m, v):
        return (p - lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + 1e-8)).detach().requires_grad_()

    return tree_map(moved, params, m, v), m, v


params = init(0, [3, 16, 1])
m = tree_map(torch.zeros_like, params)
v = tree_map(torch.zeros_like, params)
history = []
for t in range(1, 9):
    x = torch.randn(32, 3)
    value = loss_fn(params, (x, x.sin().sum(1, keepdim=True)))
    grads = unflatten(params, torch.autograd.grad(value, leaves(params)))
    params, m, v = adam_update(params, grads, m, v, t)
    history.append(value.detach())
print(torch.stack(history))
# /// correct pcgrad_surgery
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
params = list(net.parameters())
opt = torch.optim.SGD(params, lr=0.05)


def flat(loss, keep):
    grads = torch.autograd.grad(loss, params, retain_graph=keep)
    return torch.cat([g.reshape(-1) for g in grads])


for step in range(8):
    x = torch.randn(32, 4)
    out = net(x)
    gs = [flat((out[:, 0] - x.sum(1)).pow(2).mean(), True), flat((out[:, 1] + x.sum(1)).pow(2).mean(), False)]
    merged = []
    for i, g in enumerate(gs):
        other = gs[1 - i]
        dot = g @ other
        merged.append(g - dot / other.pow(2).sum() * other if dot < 0 else g)
    total = sum(merged)
    at = 0
    for p in params:
        p.grad = total[at : at + p.numel()].view_as(p).clone()
        at += p.numel()
    opt.step()
print(out.mean().item())
# /// correct pgd_adversarial_training
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=2e-4)


def pgd(model, x, y, eps=0.1, alpha=0.03, steps=4):
    adv = x.detach() + torch.empty_like(x).uniform_(-eps, eps)
    adv = adv.clamp(0, 1)
    for _ in range(steps):
        adv.requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(model(adv), y)
        grad = torch.autograd.grad(loss, [adv])[0]
        adv = adv.detach() + alpha * torch.sign(grad.detach())
        adv = torch.min(torch.max(adv, x - eps), x + eps)
        adv = torch.clamp(adv, 0.0, 1.0)
    return adv


X = torch.rand(60, 1, 6, 6)
Y = X.flatten(1)[:, :3].argmax(1)
for epoch in range(3):
    net.train()
    for idx in torch.randperm(60).split(20):
        net.eval()
        adv = pgd(net, X[idx], Y[idx])
        net.train()
        loss = F.cross_entropy(net(adv), Y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    robust = (net(pgd(net, X, Y)).argmax(1) == Y).float().mean()
    with torch.no_grad():
        clean = (net(X).argmax(1) == Y).float().mean()
    print(epoch, clean.item(), robust.item())
# /// correct phase_loop_keeps_best_weights
# ///
import copy

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
data = {phase: [(torch.randn(12, 5), torch.randint(0, 2, (12,))) for _ in range(3)] for phase in ("train", "val")}
best, best_accuracy = copy.deepcopy(model.state_dict()), -1.0

for epoch in range(3):
    for phase in ["train", "val"]:
        model.train() if phase == "train" else model.eval()
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in data[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = nn.functional.cross_entropy(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels.data)
        if phase == "train":
            scheduler.step()
        accuracy = running_corrects.double() / 36
        if phase == "val" and accuracy > best_accuracy:
            best_accuracy, best = accuracy, copy.deepcopy(model.state_dict())
model.load_state_dict(best)
# /// correct pinn_burgers
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def derivative(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


for step in range(4):
    x = (torch.rand(40, 1) * 2 - 1).requires_grad_()
    t = torch.rand(40, 1, requires_grad=True)
    u = net(torch.cat([x, t], 1))
    u_x, u_t = derivative(u, x), derivative(u, t)
    residual = u_t + u * u_x - 0.01 / math.pi * derivative(u_x, x)
    x0 = torch.rand(20, 1) * 2 - 1
    start = net(torch.cat([x0, torch.zeros_like(x0)], 1)) + torch.sin(math.pi * x0)
    loss = residual.pow(2).mean() + start.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
# /// correct pinn_poisson_soft_boundary
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 20), nn.Linear(20, 20), nn.Linear(20, 1)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)


def derivative(y, x):
    return torch.autograd.grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
x_b = torch.tensor([[0.0], [1.0]])
u_b = torch.zeros(2, 1)
for it in range(20):
    x = torch.rand(32, 1).requires_grad_()
    u = net(x)
    u_xx = derivative(derivative(u, x), x)
    f = u_xx + math.pi**2 * torch.sin(math.pi * x)
    loss_pde = (f**2).mean()
    loss_bc = ((net(x_b) - u_b) ** 2).mean()
    loss = loss_pde + 10 * loss_bc
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if it % 10 == 0:
        print(it, loss_pde.item(), loss_bc.item())
with torch.no_grad():
    xs = torch.linspace(0, 1, 11).unsqueeze(1)
    print((net(xs) - torch.sin(math.pi * xs)).abs().max())
torch.set_default_dtype(torch.float32)
# /// correct plateau_mode_max_on_accuracy
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=1)
criterion = nn.CrossEntropyLoss()
X = torch.randn(120, 6)
y = (X[:, 0] - X[:, 1] > 0).long()
Xt, yt, Xv, yv = X[:80], y[:80], X[80:], y[80:]


def accuracy():
    model.eval()
    with torch.no_grad():
        return (model(Xv).argmax(1) == yv).float().mean().item()


best = 0.0
for epoch in range(8):
    model.train()
    for i in range(0, 80, 20):
        optimizer.zero_grad()
        loss = criterion(model(Xt[i : i + 20]), yt[i : i + 20])
        loss.backward()
        optimizer.step()
    acc = accuracy()
    scheduler.step(acc)
    if acc > best:
        best = acc
    print(f"epoch {epoch}: val acc {acc:.3f} (best {best:.3f}) lr {optimizer.param_groups[0]['lr']}")
# /// correct plateau_on_f1_and_lower_learning_floor
# ///
import torch
from torch import nn

torch.manual_seed(4)


def f1(prob, target, thr=0.5):
    pred = (prob > thr).float()
    tp = (pred * target).sum()
    return (2 * tp / (pred.sum() + target.sum() + 1e-8)).item()


model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, "max", factor=0.3, patience=0, min_lr=1e-5, threshold=1e-2)
X = torch.randn(100, 5)
Y = (X[:, :3] + 0.3 * torch.randn(100, 3) > 0.5).float()
pos_weight = (Y[:70] == 0).sum(0) / (Y[:70] == 1).sum(0)
crit = nn.BCEWithLogitsLoss(pos_weight=pos_weight)
for epoch in range(10):
    for i in torch.randperm(70).split(14):
        loss = crit(model(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    with torch.no_grad():
        score = f1(model(X[70:]).sigmoid(), Y[70:])
    sched.step(score)
    print(epoch, loss.item(), score, sched.get_last_lr())
# /// correct polynomial_tutorial_weights_data
# ///
import math

import torch

dtype = torch.float
x = torch.linspace(-math.pi, math.pi, 200, dtype=dtype)
y = torch.sin(x)
p = torch.tensor([1, 2, 3])
xx = x.unsqueeze(-1).pow(p)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
loss_fn = torch.nn.MSELoss(reduction="sum")
learning_rate = 1e-6
for t in range(30):
    y_pred = model(xx)
    loss = loss_fn(y_pred, y)
    if t % 10 == 9:
        print(t, loss.item())
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for param in model.parameters():
            param -= learning_rate * param.grad
linear_layer = model[0]
print(f"y = {linear_layer.bias.item()} + {linear_layer.weight[:, 0].item()} x")
# /// correct ppo_vectorised_gae
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.actor_mean = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, act))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act))
        self.critic = nn.Sequential(nn.Linear(obs, 16), nn.Tanh(), nn.Linear(16, 1))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


envs, steps, gamma, lam = 4, 8, 0.99, 0.95
agent = Agent(3, 2)
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
state = torch.randn(envs, 3)
for update in range(2):
    optimizer.param_groups[0]["lr"] = 3e-4 * (1.0 - update / 2)
    obs, actions = torch.zeros(steps, envs, 3), torch.zeros(steps, envs, 2)
    logprobs, rewards, values = torch.zeros(steps, envs), torch.zeros(steps, envs), torch.zeros(steps, envs)
    for step in range(steps):
        obs[step] = state
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(state)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        rewards[step] = -(action.pow(2).sum(1) + state.pow(2).sum(1))
        state = 0.9 * state + 0.1 * torch.randn(envs, 3)
    with torch.no_grad():
        following = agent.get_value(state).reshape(1, -1)
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            ahead = following[0] if t == steps - 1 else values[t + 1]
            delta = rewards[t] + gamma * ahead - values[t]
            advantages[t] = last = delta + gamma * lam * last
        returns = advantages + values
    b_obs, b_act = obs.reshape(-1, 3), actions.reshape(-1, 2)
    b_logprob, b_adv, b_ret = logprobs.reshape(-1), advantages.reshape(-1), returns.reshape(-1)
    for _epoch in range(2):
        for inds in torch.randperm(envs * steps).split(16):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[inds], b_act[inds])
            logratio = newlogprob - b_logprob[inds]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = (b_adv[inds] - b_adv[inds].mean()) / (b_adv[inds].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 0.8, 1.2)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - b_ret[inds]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > 0.5:
            break
# /// correct ppo_with_kl_early_stop_and_annealed_rate
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(2)


def layer_init(layer, std=2**0.5, bias=0.0):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=1.0))
        self.actor_mean = nn.Sequential(layer_init(nn.Linear(3, 32)), nn.Tanh(), layer_init(nn.Linear(32, 1), std=0.01))
        self.actor_logstd = nn.Parameter(torch.zeros(1, 1))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, self.actor_logstd.expand_as(mean).exp())
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
num_updates, steps, envs, target_kl = 4, 16, 4, 0.5
next_obs, next_done = torch.randn(envs, 3), torch.zeros(envs)
for update in range(1, num_updates + 1):
    optimizer.param_groups[0]["lr"] = (1.0 - (update - 1.0) / num_updates) * 3e-4
    obs, actions = torch.zeros(steps, envs, 3), torch.zeros(steps, envs, 1)
    logprobs, rewards, dones, values = (torch.zeros(steps, envs) for _ in range(4))
    for step in range(steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        rewards[step] = -(action.squeeze(1) - next_obs[:, 0]).abs()
        next_obs, next_done = torch.randn(envs, 3), (torch.rand(envs) < 0.1).float()
    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
        advantages, last = torch.zeros_like(rewards), 0
        for t in reversed(range(steps)):
            nonterminal = 1.0 - (next_done if t == steps - 1 else dones[t + 1])
            nv = next_value if t == steps - 1 else values[t + 1]
            delta = rewards[t] + 0.99 * nv * nonterminal - values[t]
            advantages[t] = last = delta + 0.99 * 0.95 * nonterminal * last
        returns = advantages + values
    b_obs, b_act = obs.reshape(-1, 3), actions.reshape(-1, 1)
    b_logp, b_adv, b_ret, b_val = (x.reshape(-1) for x in (logprobs, advantages, returns, values))
    for epoch in range(3):
        for mb in torch.randperm(steps * envs).chunk(2):
            _, newlogp, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_act[mb])
            logratio = newlogp - b_logp[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                approx_kl = ((ratio - 1) - logratio).mean()
            adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * ratio.clamp(0.8, 1.2)).mean()
            newvalue = newvalue.view(-1)
            v_clipped = b_val[mb] + (newvalue - b_val[mb]).clamp(-0.2, 0.2)
            v_loss = 0.5 * torch.max((newvalue - b_ret[mb]) ** 2, (v_clipped - b_ret[mb]) ** 2).mean()
            loss = pg_loss - 0.0 * entropy.mean() + 0.5 * v_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > target_kl:
            break
    print(update, v_loss.item(), approx_kl.item())
# /// correct ppo_with_rollout_buffer
# ///
from collections import namedtuple

import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(0)
Rollout = namedtuple("Rollout", "states actions log_probs returns advantages")


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.pi = nn.Linear(32, 2)
        self.v = nn.Linear(32, 1)

    def forward(self, s):
        h = self.trunk(s)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


def collect(net, steps=32, gamma=0.9):
    states, actions, log_probs, rewards, values = [], [], [], [], []
    state = torch.randn(4)
    for _ in range(steps):
        with torch.no_grad():
            dist, value = net(state)
            action = dist.sample()
        states.append(state)
        actions.append(action)
        log_probs.append(dist.log_prob(action))
        values.append(value)
        rewards.append(float(action.item() == (state[0] > 0)))
        state = 0.8 * state + 0.4 * torch.randn(4)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + gamma * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    advantages = returns - torch.stack(values)
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    return Rollout(torch.stack(states), torch.stack(actions), torch.stack(log_probs), returns, advantages)


net = ActorCritic()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, eps=1e-5)
for iteration in range(3):
    batch = collect(net)
    for _ in range(2):
        for part in torch.randperm(len(batch.returns)).split(16):
            dist, value = net(batch.states[part])
            ratio = (dist.log_prob(batch.actions[part]) - batch.log_probs[part]).exp()
            advantage = batch.advantages[part]
            policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
            loss = policy + 0.5 * (value - batch.returns[part]).pow(2).mean() - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
    print(iteration, batch.returns.mean().item())
# /// correct progressive_unfreezing
# ///
import torch
from torch import nn

torch.manual_seed(0)
stages = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)])
head = nn.Linear(8, 2)
for stage in stages:
    stage.requires_grad_(False)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
for epoch in range(4):
    if epoch:
        stage = stages[-epoch]
        stage.requires_grad_(True)
        opt.add_param_group({"params": stage.parameters(), "lr": 1e-2 / 2**epoch})
    for _ in range(3):
        x = torch.randn(16, 8)
        h = x
        for stage in stages:
            h = stage(h)
        loss = nn.functional.cross_entropy(head(h), (x.sum(1) > 0).long())
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct prototypical_episodes
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
WAY, SHOT, QUERY = 4, 3, 5


class Encoder(nn.Module):
    def __init__(self, d=8, hid=24, z=6):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d, hid), nn.BatchNorm1d(hid), nn.ReLU(), nn.Linear(hid, z))

    def forward(self, x):
        return self.net(x)


def episode(d=8):
    centre = torch.randn(WAY, 1, d) * 2
    x = centre + torch.randn(WAY, SHOT + QUERY, d)
    return x[:, :SHOT], x[:, SHOT:]


enc = Encoder()
opt = torch.optim.Adam(enc.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=5, gamma=0.5)
for ep in range(10):
    support, query = episode()
    opt.zero_grad()
    z = enc(torch.cat([support.flatten(0, 1), query.flatten(0, 1)]))
    protos = z[: WAY * SHOT].view(WAY, SHOT, -1).mean(1)
    zq = z[WAY * SHOT :]
    logp = F.log_softmax(-torch.cdist(zq, protos) ** 2, dim=1).view(WAY, QUERY, -1)
    target = torch.arange(WAY).view(WAY, 1, 1).expand(WAY, QUERY, 1)
    loss = -logp.gather(2, target).squeeze().view(-1).mean()
    acc = logp.argmax(2).eq(target.squeeze(2)).float().mean()
    loss.backward()
    opt.step()
    sched.step()
    print(ep, loss.item(), acc.item())
# /// correct pure_bf16_weights_with_fp32_master
# ///
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1)).to(torch.bfloat16)
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
opt = torch.optim.AdamW(master, lr=2e-3)
X = torch.randn(64, 8)
Y = X.norm(dim=1, keepdim=True)
for it in range(8):
    pred = model(X.to(torch.bfloat16)).float()
    loss = (pred - Y).pow(2).mean()
    model.zero_grad()
    loss.backward()
    for m, p in zip(master, model.parameters()):
        m.grad = p.grad.float()
    nn.utils.clip_grad_norm_(master, 1.0)
    opt.step()
    with torch.no_grad():
        for m, p in zip(master, model.parameters()):
            p.copy_(m)
    print(it, loss.item())
# /// correct quantile_regression_three_heads
# ///
import torch
from torch import nn

torch.manual_seed(0)
quantiles = torch.tensor([0.1, 0.5, 0.9])


def pinball(pred, target):
    err = target - pred
    return torch.max(quantiles * err, (quantiles - 1) * err).sum(1).mean()


x = torch.rand(150, 1) * 4
y = torch.sin(x) + (0.1 + 0.2 * x) * torch.randn_like(x)
mean, std = y.mean(), y.std()
yn = (y - mean) / std
net = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    for xb, yb in zip(x.split(50), yn.split(50)):
        loss = pinball(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    q = net(x) * std + mean
    cover = ((y >= q[:, :1]) & (y <= q[:, 2:])).float().mean()
print(loss.item(), cover.item())
# /// correct quantisation_aware_fake_quant
# ///
import torch
from torch import nn

torch.manual_seed(0)


def fake_quant(x, bits=4):
    scale = x.detach().abs().max() / (2 ** (bits - 1) - 1) + 1e-8
    q = torch.clamp(torch.round(x / scale), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1) * scale
    return x + (q - x).detach()


class QLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(fake_quant(x), fake_quant(self.weight), self.bias)


net = nn.Sequential(QLinear(6, 12), nn.ReLU(), QLinear(12, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for x in torch.randn(5, 18, 6):
    loss = nn.functional.cross_entropy(net(x), (x[:, 1] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct quantisation_aware_ste_with_observer
# ///
import torch
from torch import nn

torch.manual_seed(0)


class FakeQuant(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, qmin, qmax):
        q = torch.round(x / scale)
        ctx.save_for_backward((q >= qmin) & (q <= qmax))
        return q.clamp(qmin, qmax) * scale

    @staticmethod
    def backward(ctx, g):
        (inside,) = ctx.saved_tensors
        return g * inside, None, None, None


class QLinear(nn.Linear):
    def __init__(self, *a):
        super().__init__(*a)
        self.register_buffer("act_max", torch.zeros(()))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.act_max.copy_(torch.maximum(0.9 * self.act_max, x.abs().max()))
        xq = FakeQuant.apply(x, self.act_max.clamp_min(1e-8) / 127, -127, 127)
        wq = FakeQuant.apply(self.weight, self.weight.detach().abs().max() / 7, -7, 7)
        return nn.functional.linear(xq, wq, self.bias)


net = nn.Sequential(QLinear(6, 24), nn.ReLU(), QLinear(24, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
X = torch.randn(60, 6)
Y = (X[:, 0] > X[:, 1]).long()
for epoch in range(4):
    net.train()
    for i in torch.randperm(60).split(20):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (net(X).argmax(1) == Y).float().mean().item())
# /// correct r1_penalty_every_few_steps
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.Softplus(), nn.Linear(32, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


def r1(real_logits, real):
    (g,) = torch.autograd.grad(real_logits.sum(), real, create_graph=True)
    return g.pow(2).flatten(1).sum(1).mean()


def toggle(net, on):
    for p in net.parameters():
        p.requires_grad_(on)


gen = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))
disc = Disc()
g_opt = torch.optim.Adam(gen.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_opt = torch.optim.Adam(disc.parameters(), lr=2e-3, betas=(0.0, 0.99))
d_every = 4
for i in range(12):
    toggle(gen, False)
    toggle(disc, True)
    real = torch.randn(16, 4) * torch.tensor([1.0, 2.0, 0.5, 1.0])
    fake = gen(torch.randn(16, 8))
    d_loss = F.softplus(disc(fake)).mean() + F.softplus(-disc(real)).mean()
    d_opt.zero_grad(set_to_none=True)
    d_loss.backward()
    d_opt.step()
    if i % d_every == 0:
        real.requires_grad = True
        penalty = r1(disc(real), real)
        d_opt.zero_grad(set_to_none=True)
        (5.0 * d_every * penalty).backward()
        d_opt.step()
    toggle(gen, True)
    toggle(disc, False)
    g_loss = F.softplus(-disc(gen(torch.randn(16, 8)))).mean()
    g_opt.zero_grad(set_to_none=True)
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), penalty.item(), g_loss.item())
# /// correct rdrop_kl_between_log_targets
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 4))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
X = torch.randn(64, 8)
Y = X[:, :4].argmax(1)


def compute_kl(p, q):
    lp, lq = F.log_softmax(p, -1), F.log_softmax(q, -1)
    a = F.kl_div(lp, lq, log_target=True, reduction="batchmean")
    b = F.kl_div(lq, lp, log_target=True, reduction="batchmean")
    return (a + b) / 2


for epoch in range(4):
    for idx in torch.randperm(64).split(16):
        a, b = model(X[idx]), model(X[idx])
        ce = 0.5 * (F.cross_entropy(a, Y[idx]) + F.cross_entropy(b, Y[idx]))
        loss = ce + 1.0 * compute_kl(a, b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        print(epoch, ce.item(), (model(X).argmax(1) == Y).float().mean().item())
    model.train()
# /// correct real_nvp_flow
# ///
import torch
from torch import nn
from torch.distributions import Independent, Normal

torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", torch.tensor(mask))
        self.net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 4))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def forward(self, x):
        s, t = self.net(x * self.mask).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - self.mask)
        t = t * (1 - self.mask)
        return x * s.exp() + t, s.sum(1)

    def inverse(self, z):
        s, t = self.net(z * self.mask).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - self.mask)
        return (z - t * (1 - self.mask)) * (-s).exp()


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(m) for m in ([1.0, 0.0], [0.0, 1.0]) * 2)
        self.register_buffer("loc", torch.zeros(2))

    def log_prob(self, x):
        total = 0
        for layer in self.layers:
            x, log_det = layer(x)
            total = total + log_det
        return Independent(Normal(self.loc, 1.0), 1).log_prob(x) + total

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, 2)
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
for step in range(8):
    x = torch.randn(64, 2) * torch.tensor([2.0, 0.3]) + 1
    nll = -flow.log_prob(x).mean()
    opt.zero_grad()
    nll.backward()
    opt.step()
print(nll.item(), flow.sample(4))
# /// correct real_nvp_with_logdet
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)


class Coupling(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)
        self.s = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2), nn.Tanh())
        self.t = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(), nn.Linear(16, 2))

    def forward(self, x):
        keep = x * self.mask
        s = self.s(keep) * (1 - self.mask)
        t = self.t(keep) * (1 - self.mask)
        return keep + (1 - self.mask) * (x * s.exp() + t), s.sum(1)

    def inverse(self, z):
        keep = z * self.mask
        s = self.s(keep) * (1 - self.mask)
        t = self.t(keep) * (1 - self.mask)
        return keep + (1 - self.mask) * (z - t) * (-s).exp()


flow = nn.ModuleList(Coupling(torch.tensor(m)) for m in ([0.0, 1.0], [1.0, 0.0], [0.0, 1.0]))
optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
for it in range(15):
    a = torch.rand(64) * math.pi
    x = torch.stack([a.cos(), a.sin()], 1) + 0.1 * torch.randn(64, 2)
    logdet = torch.zeros(64)
    z = x
    for layer in flow:
        z, ld = layer(z)
        logdet += ld
    logp = -0.5 * z.pow(2).sum(1) - math.log(2 * math.pi)
    loss = -(logp + logdet).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    s = torch.randn(5, 2)
    for layer in reversed(flow):
        s = layer.inverse(s)
print(loss.item(), s)
# /// correct reinforce_with_value_baseline_two_optimizers
# ///
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.distributions import Normal

torch.manual_seed(5)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu = nn.Linear(2, 1)
        self.log_std = nn.Parameter(torch.zeros(1))

    def forward(self, s):
        return Normal(self.mu(s), self.log_std.exp())


policy, baseline = Policy(), nn.Linear(2, 1)
pi_opt, v_opt = optim.Adam(policy.parameters(), 1e-2), optim.Adam(baseline.parameters(), 1e-2)


def episode():
    s, log = torch.randn(2), []
    for _ in range(10):
        d = policy(s)
        a = d.sample()
        r = -(s.sum() + a).pow(2).item()
        log.append((s, d.log_prob(a).sum(), r))
        s = (s + 0.1 * torch.cat((a, a)) + 0.05 * torch.randn(2)).clamp(-3, 3)
    return log


for ep in range(5):
    trajectory = episode()
    G, returns = 0.0, []
    for _, _, r in trajectory[::-1]:
        G = r + 0.9 * G
        returns.append(G)
    returns = torch.tensor(returns[::-1])
    states = torch.stack([s for s, _, _ in trajectory])
    logp = torch.stack([lp for _, lp, _ in trajectory])
    v = baseline(states).squeeze(1)
    delta = returns - v.detach()
    pi_loss = -(logp * delta).sum()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    v_loss = F.smooth_l1_loss(v, returns)
    v_opt.zero_grad()
    v_loss.backward()
    v_opt.step()
    print(ep, returns[0].item())
# /// correct reptile
# ///
import torch
from torch import nn

torch.manual_seed(4)
model = nn.Linear(3, 1)
for round_ in range(4):
    before = {k: v.clone() for k, v in model.state_dict().items()}
    w = torch.randn(3, 1)
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(5):
        x = torch.randn(16, 3)
        opt.zero_grad()
        loss = (model(x) - x @ w).square().mean()
        loss.backward()
        opt.step()
    after = model.state_dict()
    model.load_state_dict({k: before[k] + 0.5 * (after[k] - before[k]) for k in before})
    print(round_, loss.item())
# /// correct reptile_with_meta_sgd_interpolation
# ///
import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))


def sine():
    phase, amp = torch.rand(1).item() * 6.28, torch.rand(1).item() * 4.9 + 0.1
    return lambda x: amp * torch.sin(x + phase)


xs = torch.linspace(-5, 5, 50).unsqueeze(1)
iterations = 6
for it in range(iterations):
    before = copy.deepcopy(model.state_dict())
    f = sine()
    y = f(xs)
    inner = torch.optim.SGD(model.parameters(), lr=0.02)
    for _ in range(2):
        for idx in torch.randperm(50).split(10):
            inner.zero_grad()
            (model(xs[idx]) - y[idx]).pow(2).mean().backward()
            inner.step()
    after = model.state_dict()
    outer = 0.1 * (1 - it / iterations)
    model.load_state_dict({k: before[k] + (after[k] - before[k]) * outer for k in before})

probe = copy.deepcopy(model)
f = sine()
opt = torch.optim.SGD(probe.parameters(), lr=0.02)
for _ in range(4):
    loss = (probe(xs[::5]) - f(xs[::5])).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct sac_twin_critics_auto_temperature
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Normal

torch.manual_seed(0)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def sample(self, s):
        mean, log_std = self.net(s).chunk(2, -1)
        dist = Normal(mean, log_std.clamp(-5, 2).exp())
        u = dist.rsample()
        a = torch.tanh(u)
        logp = dist.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)
        return a, logp.sum(-1, keepdim=True)


actor, q1, q2 = Actor(), mlp(4, 1), mlp(4, 1)
q1_t, q2_t = copy.deepcopy(q1), copy.deepcopy(q2)
for p in [*q1_t.parameters(), *q2_t.parameters()]:
    p.requires_grad_(False)
log_alpha = torch.zeros(1, requires_grad=True)
target_entropy = -1.0
actor_opt = torch.optim.Adam(actor.parameters(), 3e-4)
critic_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], 3e-4)
alpha_opt = torch.optim.Adam([log_alpha], 3e-4)
for step in range(10):
    s, a = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1
    r, s2, d = -(s[:, :1] - a).abs(), torch.randn(32, 3), (torch.rand(32, 1) < 0.1).float()
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, lp2 = actor.sample(s2)
        sa2 = torch.cat([s2, a2], 1)
        y = r + 0.99 * (1 - d) * (torch.min(q1_t(sa2), q2_t(sa2)) - alpha * lp2)
    sa = torch.cat([s, a], 1)
    critic_loss = F.mse_loss(q1(sa), y) + F.mse_loss(q2(sa), y)
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    pi, logp = actor.sample(s)
    spi = torch.cat([s, pi], 1)
    actor_loss = (alpha * logp - torch.min(q1(spi), q2(spi))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    alpha_loss = -(log_alpha * (logp + target_entropy).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
    with torch.no_grad():
        for net, tgt in ((q1, q1_t), (q2, q2_t)):
            for p, pt in zip(net.parameters(), tgt.parameters()):
                pt.mul_(0.995).add_(0.005 * p)
print(critic_loss.item(), actor_loss.item(), log_alpha.exp().item())
# /// correct safe_where_and_sqrt_distances
# ///
import torch
from torch import nn

torch.manual_seed(0)
points = nn.Parameter(torch.randn(12, 2))
truth = torch.rand(12, 2) * 4
D = torch.cdist(truth, truth)
opt = torch.optim.Adam([points], lr=0.1)
off = ~torch.eye(12, dtype=torch.bool)
for it in range(25):
    diff = points[:, None] - points[None]
    sq = diff.pow(2).sum(-1)
    safe = torch.where(sq > 0, sq, torch.ones_like(sq))
    dist = torch.where(sq > 0, safe.sqrt(), torch.zeros_like(sq))
    stress = ((dist - D)[off] ** 2).sum() / (D[off] ** 2).sum()
    opt.zero_grad()
    stress.backward()
    opt.step()
print(stress.item())
# /// correct saliency_and_integrated_gradients
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 12), nn.Softplus(), nn.Linear(12, 3)).eval()
for p in net.parameters():
    p.requires_grad_(False)
x = torch.randn(5)
total = torch.zeros(5)
for alpha in torch.linspace(0.1, 1.0, 6):
    point = (alpha * x).detach().requires_grad_()
    net(point)[1].backward()
    total += point.grad
attribution = total / 6 * x
leaf = x.clone().requires_grad_()
net(leaf).max().backward()
print(attribution, leaf.grad.abs())
# /// correct saliency_smoothgrad_after_training
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
X = torch.randn(40, 1, 8, 8)
Y = (X[:, 0, :4].mean((1, 2)) > 0).long()
for _ in range(8):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(X), Y)
    loss.backward()
    opt.step()

net.eval()
img = X[:1].clone()
total = torch.zeros_like(img)
for _ in range(10):
    noisy = (img + 0.1 * torch.randn_like(img)).requires_grad_()
    score = net(noisy)[0, Y[0]]
    net.zero_grad()
    score.backward()
    total += noisy.grad.abs()
saliency = total / 10
img.requires_grad_(True)
scores = net(img)
scores[0, scores.argmax()].backward()
vanilla = img.grad.data.abs().max(dim=1)[0]
print(saliency[0, 0, :4].mean().item(), saliency[0, 0, 4:].mean().item(), vanilla.shape)
# /// correct sam_optimizer_class
# ///
import torch
from torch import nn

torch.manual_seed(0)


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        norm = torch.norm(torch.stack([p.grad.norm(2) for g in self.param_groups for p in g["params"] if p.grad is not None]), 2)
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                e_w = p.grad * scale
                p.add_(e_w)
                self.state[p]["e_w"] = e_w

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.sub_(self.state[p]["e_w"])
        self.base_optimizer.step()

    def step(self, closure=None):
        raise NotImplementedError("use first_step and second_step")


model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.05, momentum=0.9)
loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
X, Y = torch.randn(60, 6), torch.randint(0, 3, (60,))
for epoch in range(3):
    for i in torch.randperm(60).split(20):
        loss = loss_fn(model(X[i]), Y[i])
        loss.backward()
        optimizer.first_step()
        optimizer.zero_grad()
        loss_fn(model(X[i]), Y[i]).backward()
        optimizer.second_step()
        optimizer.zero_grad()
    print(epoch, loss.item())
# /// correct seq2seq_attention_teacher_forcing
# ///
import random

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
random.seed(0)


class Encoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.gru = nn.GRU(width, width)

    def forward(self, source):
        return self.gru(self.embedding(source))


class Decoder(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.score = nn.Linear(2 * width, 1)
        self.cell = nn.GRUCell(2 * width, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, token, hidden, memory):
        scores = self.score(torch.cat([memory, hidden.expand_as(memory)], -1)).softmax(0)
        context = (scores * memory).sum(0)
        hidden = self.cell(torch.cat([self.embedding(token), context], -1), hidden)
        return self.out(hidden), hidden


encoder, decoder = Encoder(12, 16), Decoder(12, 16)
optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (encoder, decoder)]
for step in range(5):
    source = torch.randint(1, 12, (6, 8))
    target = source.flip(0)
    for optimizer in optimizers:
        optimizer.zero_grad()
    memory, hidden = encoder(source)
    hidden, token, loss = hidden[0], torch.zeros(8, dtype=torch.long), 0
    forced = random.random() < 0.5
    for t in range(len(target)):
        logits, hidden = decoder(token, hidden, memory)
        loss += F.cross_entropy(logits, target[t])
        token = target[t] if forced else logits.topk(1).indices.squeeze(1).detach()
    loss.backward()
    for module, optimizer in zip((encoder, decoder), optimizers):
        nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
    print(step, loss.item() / len(target))
# /// correct sharpness_aware_minimisation
# ///
import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kw):
        super().__init__(params, dict(rho=rho, **kw))
        self.base = base(self.param_groups, **kw)

    @torch.no_grad()
    def climb(self):
        norms = [p.grad.norm() for g in self.param_groups for p in g["params"] if p.grad is not None]
        scale = 0.05 / (torch.stack(norms).norm() + 1e-12)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    move = p.grad * scale
                    p.add_(move)
                    self.state[p]["move"] = move
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if "move" in self.state[p]:
                    p.sub_(self.state[p]["move"])
        self.base.step()
        self.zero_grad()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(8):
    x = torch.randn(32, 5)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.climb()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print(loss.item())
# /// correct siamese_contrastive
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, a, b):
        return nn.functional.pairwise_distance(self.embed(a), self.embed(b))


net = Siamese()
opt = torch.optim.Adadelta(net.parameters(), lr=1.0)
schedule = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.7)
for epoch in range(3):
    for a in torch.randn(3, 14, 9):
        same = torch.randint(0, 2, (14,)).float()
        b = torch.where(same[:, None] > 0, a + 0.1 * torch.randn_like(a), torch.randn_like(a))
        d = net(a, b)
        loss = (same * d.pow(2) + (1 - same) * (1 - d).clamp(min=0).pow(2)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    schedule.step()
print(loss.item())
# /// correct siamese_one_shared_tower
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 6))

    def forward_once(self, x):
        return self.tower(x)

    def forward(self, a, b):
        return self.forward_once(a), self.forward_once(b)


class ContrastiveLoss(nn.Module):
    def __init__(self, margin=1.0):
        super().__init__()
        self.margin = margin

    def forward(self, o1, o2, label):
        d = F.pairwise_distance(o1, o2)
        return torch.mean((1 - label) * d.pow(2) + label * torch.clamp(self.margin - d, min=0.0).pow(2))


net, criterion = Siamese(), ContrastiveLoss()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)
counter, loss_history = [], []
for epoch in range(3):
    for i in range(5):
        y = torch.randint(0, 2, (16,)).float()
        a = torch.randn(16, 8)
        b = torch.where(y[:, None] == 0, a + 0.1 * torch.randn(16, 8), torch.randn(16, 8))
        optimizer.zero_grad()
        out1, out2 = net(a, b)
        loss = criterion(out1, out2, y)
        loss.backward()
        optimizer.step()
        counter.append(epoch * 5 + i)
        loss_history.append(loss.item())
print(loss_history[-1])
# /// correct simclr_nt_xent
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def augment(x):
    return x * (1 + 0.1 * torch.randn(x.size(0), 1)) + 0.2 * torch.randn_like(x)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(inplace=True), nn.Linear(32, 16))
        self.projector = nn.Sequential(nn.Linear(16, 16), nn.ReLU(inplace=True), nn.Linear(16, 8))

    def forward(self, x):
        return self.projector(self.encoder(x))


def contrastive_logits(features, temperature=0.2):
    n = features.shape[0] // 2
    labels = torch.cat([torch.arange(n) for _ in range(2)])
    labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    mask = torch.eye(2 * n, dtype=torch.bool)
    labels = labels[~mask].view(2 * n, -1)
    similarity = similarity[~mask].view(2 * n, -1)
    positives = similarity[labels.bool()].view(2 * n, -1)
    negatives = similarity[~labels.bool()].view(2 * n, -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return logits, torch.zeros(2 * n, dtype=torch.long)


model = SimCLR()
optimizer = torch.optim.Adam(model.parameters(), 3e-4, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3, eta_min=0)
data = torch.randn(48, 10)
for epoch in range(3):
    for images in data.split(16):
        logits, labels = contrastive_logits(model(torch.cat([augment(images), augment(images)])))
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    top1 = (logits.argmax(1) == labels).float().mean()
    print(epoch, loss.item(), top1.item())

classifier = nn.Linear(16, 2)
probe = torch.optim.SGD(classifier.parameters(), lr=0.1)
model.eval()
with torch.no_grad():
    feats = model.encoder(data)
for _ in range(5):
    probe_loss = F.cross_entropy(classifier(feats), (data[:, 0] > 0).long())
    probe.zero_grad()
    probe_loss.backward()
    probe.step()
print(probe_loss.item())
# /// correct simsiam_stop_gradient
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
f = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 6))
h = nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 6))
opt = torch.optim.SGD([*f.parameters(), *h.parameters()], lr=0.05)
for x in torch.randn(4, 10, 6):
    x1, x2 = x + torch.randn_like(x) * 0.2, x + torch.randn_like(x) * 0.2
    z1, z2 = f(x1), f(x2)
    p1, p2 = h(z1), h(z2)
    loss = -(F.cosine_similarity(p1, z2.detach()).mean() + F.cosine_similarity(p2, z1.detach()).mean()) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct skip_step_when_loss_not_finite
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
skipped = 0
for step in range(10):
    x = torch.randn(16, 5)
    if step == 4:
        x[3, 2] = float("nan")
    y = x[:, :1] * 2
    loss = nn.functional.smooth_l1_loss(net(x), y)
    if not torch.isfinite(loss):
        skipped += 1
        print("bad batch", step)
        continue
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), skipped)
# /// correct soft_actor_critic_three_optimizers
# ///
import copy

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(3)


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 32), nn.ReLU(), nn.Linear(32, o))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(3, 2)

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        normal = torch.distributions.Normal(mean, log_std.clamp(-5, 2).exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1, keepdim=True)


policy, q1, q2 = Policy(), mlp(4, 1), mlp(4, 1)
targets = [copy.deepcopy(q).requires_grad_(False) for q in (q1, q2)]
log_alpha = torch.zeros(1, requires_grad=True)
q_opt = torch.optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-3)
pi_opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-3)

for step in range(6):
    obs, act, rew, nxt = torch.randn(32, 3), torch.rand(32, 1) * 2 - 1, torch.randn(32, 1), torch.randn(32, 3)
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        a2, lp2 = policy(nxt)
        q_next = torch.min(*(t(torch.cat([nxt, a2], 1)) for t in targets))
        backup = rew + 0.99 * (q_next - alpha * lp2)
    both = torch.cat([obs, act], 1)
    q_loss = F.mse_loss(q1(both), backup) + F.mse_loss(q2(both), backup)
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()

    for p in q_opt.param_groups[0]["params"]:
        p.requires_grad_(False)
    a, lp = policy(obs)
    pair = torch.cat([obs, a], 1)
    pi_loss = (alpha * lp - torch.min(q1(pair), q2(pair))).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    for p in q_opt.param_groups[0]["params"]:
        p.requires_grad_(True)

    alpha_loss = -(log_alpha * (lp + 1.0).detach()).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()

    with torch.no_grad():
        for q, t in zip((q1, q2), targets):
            for p, pt in zip(q.parameters(), t.parameters()):
                pt.mul_(0.995).add_(0.005 * p)
print(q_loss.item(), pi_loss.item(), log_alpha.item())
# /// correct soft_mixture_of_experts_load_balance
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class SwitchFFN(nn.Module):
    def __init__(self, d, n_experts=4, capacity=1.5):
        super().__init__()
        self.router = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d)) for _ in range(n_experts))
        self.n, self.capacity = n_experts, capacity

    def forward(self, x):
        probs = self.router(x + (0.01 * torch.randn_like(x) if self.training else 0)).softmax(-1)
        gate, choice = probs.max(-1)
        cap = int(self.capacity * len(x) / self.n)
        out = x.clone()
        dropped = 0
        for e, expert in enumerate(self.experts):
            idx = (choice == e).nonzero(as_tuple=True)[0]
            dropped += max(0, len(idx) - cap)
            idx = idx[:cap]
            if len(idx):
                out[idx] = x[idx] + gate[idx, None] * expert(x[idx])
        fraction = F.one_hot(choice, self.n).float().mean(0)
        aux = self.n * (fraction * probs.mean(0)).sum()
        return out, aux, dropped


layer, head = SwitchFFN(8), nn.Linear(8, 2)
params = list(layer.parameters()) + list(head.parameters())
opt = torch.optim.Adam(params, lr=3e-3)
X = torch.randn(96, 8)
Y = (X[:, 0] * X[:, 1] > 0).long()
for epoch in range(5):
    for i in torch.randperm(96).split(32):
        h, aux, dropped = layer(X[i])
        loss = F.cross_entropy(head(h), Y[i]) + 0.01 * aux
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), aux.item(), dropped)
# /// correct sparse_experts_top_k
# ///
import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, count=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probs = self.gate(flat).softmax(-1)
        weight, chosen = probs.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = (chosen == i).nonzero(as_tuple=True)
            if token.numel() == 0:
                continue
            out.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        load = F.one_hot(chosen, probs.shape[-1]).float().sum(1).mean(0)
        self.balance = probs.shape[-1] * (load * probs.mean(0)).sum()
        return out.view_as(x)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 2, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.moe = Experts(width)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.moe(self.n2(x))


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(30, 8), Layer(8), Layer(8), nn.Linear(8, 30))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for _ in range(5):
    ids = torch.randint(0, 30, (4, 10))
    logits = model(ids[:, :-1])
    task = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    loss = task + 0.01 * sum(m.balance for m in model.modules() if isinstance(m, Experts))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
# /// correct stochastic_depth_and_ema_of_loss
# ///
import torch
from torch import nn

torch.manual_seed(0)


class DropPath(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        mask = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(keep)
        return x * mask.div_(keep)


class Block(nn.Module):
    def __init__(self, d, p):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(d), nn.Linear(d, d)
        self.gamma = nn.Parameter(1e-4 * torch.ones(d))
        self.path = DropPath(p)

    def forward(self, x):
        return x + self.path(self.gamma * torch.relu(self.fc(self.norm(x))))


d, depth = 10, 4
model = nn.Sequential(nn.Linear(6, d), *[Block(d, 0.3 * i / (depth - 1)) for i in range(depth)], nn.Linear(d, 2))
opt = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.05)
X = torch.randn(64, 6)
Y = (X[:, 0] > 0).long()
loss_ema = 0.0
for it in range(12):
    idx = torch.randint(64, (16,))
    loss = nn.functional.cross_entropy(model(X[idx]), Y[idx])
    loss_ema = 0.9 * loss_ema + 0.1 * loss.detach()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(float(loss_ema / (1 - 0.9**12)))
# /// correct straight_through_binary
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


class BinaryLinear(nn.Linear):
    def forward(self, x):
        return nn.functional.linear(x, Sign.apply(self.weight), self.bias)


net = nn.Sequential(BinaryLinear(8, 16), nn.Hardtanh(), BinaryLinear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(5, 24, 8):
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p in net.parameters():
            p.clamp_(-1, 1)
print(loss.item())
# /// correct supervised_contrastive_then_linear
# ///
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
# /// correct swa_utils_with_swalr
# ///
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
ds = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
loader = DataLoader(ds, batch_size=16, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
swa_model = AveragedModel(model)
swa_start = 3
swa_scheduler = SWALR(optimizer, anneal_strategy="linear", anneal_epochs=2, swa_lr=0.05)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(6):
    for input, target in loader:
        optimizer.zero_grad()
        loss_fn(model(input), target).backward()
        optimizer.step()
    if epoch > swa_start:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
update_bn(loader, swa_model)
swa_model.eval()
with torch.no_grad():
    acc = sum((swa_model(a).argmax(1) == b).sum().item() for a, b in loader) / len(ds)
print(acc)
# /// correct swa_with_batch_norm_update
# ///
import torch
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 5)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
average = AveragedModel(model)
opt = torch.optim.SGD(model.parameters(), lr=0.05)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=4)
flat = SWALR(opt, swa_lr=0.02)
for epoch in range(5):
    for a, b in loader:
        opt.zero_grad()
        nn.functional.mse_loss(model(a), b).backward()
        opt.step()
    if epoch >= 2:
        average.update_parameters(model)
        flat.step()
    else:
        cosine.step()
update_bn(loader, average)
average.eval()
with torch.no_grad():
    print(nn.functional.mse_loss(average(x), x.sum(1, keepdim=True)).item())
# /// correct tbptt_char_model
# ///
import torch
from torch import nn

torch.manual_seed(0)
text = "hello gradient world, hello leaves and graphs " * 4
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])


class CharLM(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed, self.rnn, self.out = nn.Embedding(n, 16), nn.LSTM(16, 24, batch_first=True), nn.Linear(24, n)

    def forward(self, x, state=None):
        y, state = self.rnn(self.embed(x), state)
        return self.out(y), state


lm = CharLM(len(chars))
opt = torch.optim.Adam(lm.parameters(), lr=5e-3)
state = None
for start in range(0, 120, 20):
    x, y = ids[start : start + 20][None], ids[start + 1 : start + 21][None]
    if state is not None:
        state = tuple(s.detach() for s in state)
    logits, state = lm(x, state)
    loss = nn.functional.cross_entropy(logits[0], y[0])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(start, loss.item())
# /// correct tbptt_stateful_lstm_detached
# ///
import torch
from torch import nn

torch.manual_seed(0)


class LM(nn.Module):
    def __init__(self, V=12, E=8, H=16):
        super().__init__()
        self.emb = nn.Embedding(V, E)
        self.rnn = nn.LSTM(E, H, num_layers=2, dropout=0.2)
        self.dec = nn.Linear(H, V)
        self.drop = nn.Dropout(0.2)
        self.H = H

    def forward(self, x, hidden):
        out, hidden = self.rnn(self.drop(self.emb(x)), hidden)
        return self.dec(self.drop(out)).view(-1, 12), hidden

    def init_hidden(self, bsz):
        w = next(self.parameters())
        return (w.new_zeros(2, bsz, self.H), w.new_zeros(2, bsz, self.H))


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    n = data.size(0) // bsz
    return data[: n * bsz].view(bsz, -1).t().contiguous()


corpus = batchify((torch.arange(240) * 5 + torch.randint(0, 2, (240,))) % 12, 4)
model, bptt, lr = LM(), 10, 2.0
criterion = nn.CrossEntropyLoss()
best = None
for epoch in range(2):
    model.train()
    total = 0.0
    hidden = model.init_hidden(4)
    for i in range(0, 48 - 1, bptt):
        n = min(bptt, 48 - 1 - i)
        data, targets = corpus[i : i + n], corpus[i + 1 : i + 1 + n].reshape(-1)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hidden = model.init_hidden(4)
        out, hidden = model(corpus[48:-1], hidden)
        val = criterion(out, corpus[49:].reshape(-1)).item()
    if best is None or val < best:
        best = val
    else:
        lr /= 4.0
    print(epoch, total, val)
# /// correct td3_delayed_policy
# ///
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.q2 = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, s, a):
        sa = torch.cat([s, a], 1)
        return self.q1(sa), self.q2(sa)

    def Q1(self, s, a):
        return self.q1(torch.cat([s, a], 1))


critic = Critic()
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4)
for total_it in range(1, 9):
    state, action = torch.randn(24, 3), torch.rand(24, 1) * 2 - 1
    next_state, not_done = torch.randn(24, 3), (torch.rand(24, 1) > 0.05).float()
    reward = -(state.mean(1, keepdim=True) - action) ** 2
    with torch.no_grad():
        noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
        next_action = (actor_target(next_state) + noise).clamp(-1, 1)
        target_Q1, target_Q2 = critic_target(next_state, next_action)
        target_Q = reward + not_done * 0.99 * torch.min(target_Q1, target_Q2)
    current_Q1, current_Q2 = critic(state, action)
    critic_loss = F.mse_loss(current_Q1, target_Q) + F.mse_loss(current_Q2, target_Q)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    if total_it % 2 == 0:
        actor_loss = -critic.Q1(state, actor(state)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        for param, target_param in zip(critic.parameters(), critic_target.parameters()):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
        for param, target_param in zip(actor.parameters(), actor_target.parameters()):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
print(critic_loss.item(), actor_loss.item())
# /// correct teacher_forcing_pointer_decoder
# ///
import random

import torch
import torch.nn.functional as F
from torch import nn

random.seed(0)
torch.manual_seed(0)
V, H, MAX = 9, 16, 6
SOS, EOS = 0, 1


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(V, H), nn.GRU(H, H, batch_first=True)

    def forward(self, x):
        return self.gru(self.embedding(x))


class AttnDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.gru = nn.Embedding(V, H), nn.GRU(2 * H, H, batch_first=True)
        self.Wa, self.Ua, self.Va = nn.Linear(H, H), nn.Linear(H, H), nn.Linear(H, 1)
        self.out = nn.Linear(H, V)

    def forward(self, enc, hidden, target=None):
        inp = torch.full((enc.size(0), 1), SOS)
        outs = []
        for i in range(MAX):
            q = hidden.permute(1, 0, 2)
            w = F.softmax(self.Va(torch.tanh(self.Wa(q) + self.Ua(enc))).squeeze(2).unsqueeze(1), dim=-1)
            o, hidden = self.gru(torch.cat((self.embedding(inp), torch.bmm(w, enc)), 2), hidden)
            o = self.out(o)
            outs.append(o)
            if target is not None:
                inp = target[:, i].unsqueeze(1)
            else:
                _, topi = o.topk(1)
                inp = topi.squeeze(-1).detach()
        return F.log_softmax(torch.cat(outs, 1), -1)


enc, dec = EncoderRNN(), AttnDecoder()
enc_opt, dec_opt = torch.optim.Adam(enc.parameters(), 1e-2), torch.optim.Adam(dec.parameters(), 1e-2)
criterion = nn.NLLLoss()
for it in range(8):
    src = torch.randint(2, V, (8, MAX - 1))
    tgt = torch.cat([src.flip(1), torch.full((8, 1), EOS)], 1)
    enc_opt.zero_grad()
    dec_opt.zero_grad()
    o, h = enc(src)
    out = dec(o, h, tgt if random.random() < 0.5 else None)
    loss = criterion(out.view(-1, V), tgt.view(-1))
    loss.backward()
    enc_opt.step()
    dec_opt.step()
    print(it, loss.item())
# /// correct temperature_scaling_after_training
# ///
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
X = torch.randn(160, 10)
Y = (X[:, :4] + torch.randn(160, 4)).argmax(1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(5):
    for i in torch.randperm(100).split(25):
        loss = nn.functional.cross_entropy(net(X[i]), Y[i])
        opt.zero_grad()
        loss.backward()
        opt.step()


class ModelWithTemperature(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.temperature = nn.Parameter(torch.ones(1) * 1.5)

    def forward(self, x):
        return self.temperature_scale(self.model(x))

    def temperature_scale(self, logits):
        return logits / self.temperature.unsqueeze(1).expand(logits.size(0), logits.size(1))

    def set_temperature(self, x, y):
        nll = nn.CrossEntropyLoss()
        self.model.eval()
        with torch.no_grad():
            logits = self.model(x)
        optimizer = torch.optim.LBFGS([self.temperature], lr=0.05, max_iter=20)

        def closure():
            optimizer.zero_grad()
            loss = nll(self.temperature_scale(logits), y)
            loss.backward()
            return loss

        before = nll(logits, y).item()
        optimizer.step(closure)
        print(before, nll(self.temperature_scale(logits), y).item(), self.temperature.item())
        return self


scaled = ModelWithTemperature(net).set_temperature(X[100:], Y[100:])
print(scaled(X[100:]).softmax(-1).max(-1).values.mean().item())
# /// correct token_weighted_accumulation
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
V = 16
model = nn.Sequential(nn.Embedding(V, 12), nn.Linear(12, 24), nn.GELU(), nn.Linear(24, V))
opt = torch.optim.Adam(model.parameters(), lr=2e-3)


def microbatch(rows, longest):
    ids = torch.randint(1, V, (rows, longest + 1))
    keep = torch.arange(longest)[None] < torch.randint(2, longest + 1, (rows, 1))
    return ids[:, :-1], ids[:, 1:].masked_fill(~keep, -100)


for step in range(5):
    window = [microbatch(3, n) for n in (6, 10, 4)]
    tokens = sum((t != -100).sum() for _, t in window)
    opt.zero_grad()
    shown = 0.0
    for x, t in window:
        logits = model(x)
        loss = F.cross_entropy(logits.flatten(0, 1), t.flatten(), ignore_index=-100, reduction="sum") / tokens
        loss.backward()
        shown += loss.item()
    grad_norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    print(f"step {step} loss {shown:.3f} tokens {tokens} norm {grad_norm:.2f}")
# /// correct torch_func_grad_and_manual_sgd
# ///
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
params = {k: v.detach() for k, v in net.named_parameters()}


def loss_fn(p, x, y):
    return (functional_call(net, p, (x,)) - y).pow(2).mean()


x = torch.randn(40, 3)
y = x.sum(1, keepdim=True).sin()
velocity = {k: torch.zeros_like(v) for k, v in params.items()}
for step in range(10):
    grads, loss = grad_and_value(loss_fn)(params, x, y)
    velocity = {k: 0.9 * velocity[k] + g for k, g in grads.items()}
    params = {k: p - 0.05 * velocity[k] for k, p in params.items()}
    print(step, loss.item())
per_sample, _ = vmap(grad_and_value(loss_fn), in_dims=(None, 0, 0))(params, x, y)
print({k: tuple(g.shape) for k, g in per_sample.items()})
net.load_state_dict(params)
# /// correct torch_func_vmap_per_sample
# ///
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = nn.Linear(5, 2)
params = {k: v.detach() for k, v in net.named_parameters()}


def loss_fn(params, x, y):
    return nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])


per_sample = vmap(grad(loss_fn), in_dims=(None, 0, 0))
for x in torch.randn(3, 8, 5):
    grads = per_sample(params, x, torch.randint(0, 2, (8,)))
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (1.0 / norms).clamp(max=1.0)
    params = {k: v - 0.1 * (grads[k] * factor.view(-1, *[1] * (grads[k].dim() - 1))).mean(0) for k, v in params.items()}
print(norms)
# /// correct trades_adversarial_training
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def perturbed(x, eps=0.2, steps=3):
    model.eval()
    near = x + 0.001 * torch.randn_like(x)
    clean = F.softmax(model(x), dim=1).detach()
    for _ in range(steps):
        near.requires_grad_()
        with torch.enable_grad():
            gap = F.kl_div(F.log_softmax(model(near), dim=1), clean, reduction="sum")
        grad = torch.autograd.grad(gap, [near])[0]
        near = near.detach() + 0.08 * grad.sign()
        near = torch.min(torch.max(near, x - eps), x + eps)
    model.train()
    return near.detach()


for step in range(6):
    x = torch.randn(32, 8)
    y = x[:, :3].argmax(1)
    adv = perturbed(x)
    opt.zero_grad()
    logits = model(x)
    robust = F.kl_div(F.log_softmax(model(adv), dim=1), F.softmax(logits, dim=1), reduction="batchmean")
    loss = F.cross_entropy(logits, y) + 3 * robust
    loss.backward()
    opt.step()
print(loss.item())
# /// correct trainer_class_with_callbacks_and_metrics
# ///
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    lr: float = 1e-2
    epochs: int = 3
    batch_size: int = 16
    grad_clip: float = 1.0
    log: list = field(default_factory=list)


class Meter:
    def __init__(self):
        self.sum = self.count = 0.0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


class Trainer:
    def __init__(self, model, cfg):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.8)
        self.criterion = nn.CrossEntropyLoss()

    def run_batch(self, x, y):
        logits = self.model(x)
        return self.criterion(logits, y), logits

    def train_epoch(self, loader):
        self.model.train()
        meter = Meter()
        for x, y in loader:
            loss, _ = self.run_batch(x, y)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
            self.optimizer.step()
            meter.update(loss.item(), len(x))
        self.scheduler.step()
        return meter.avg

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        meter, hits = Meter(), Meter()
        for x, y in loader:
            loss, logits = self.run_batch(x, y)
            meter.update(loss.item(), len(x))
            hits.update((logits.argmax(1) == y).float().mean().item(), len(x))
        return meter.avg, hits.avg

    def fit(self, train, val):
        for epoch in range(self.cfg.epochs):
            row = (epoch, self.train_epoch(train), *self.evaluate(val))
            self.cfg.log.append(row)
            print("%d train %.3f val %.3f acc %.3f" % row)


torch.manual_seed(0)
X = torch.randn(96, 8)
Y = (X[:, :2].sum(1) > 0).long()
ds = [TensorDataset(X[:64], Y[:64]), TensorDataset(X[64:], Y[64:])]
cfg = Config()
Trainer(nn.Sequential(nn.Linear(8, 24), nn.Dropout(0.2), nn.ReLU(), nn.Linear(24, 2)), cfg).fit(
    DataLoader(ds[0], cfg.batch_size, shuffle=True), DataLoader(ds[1], 32)
)
# /// correct trainer_class_with_hooks
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Callback:
    def on_batch_end(self, trainer, loss): ...
    def on_epoch_end(self, trainer): ...


class Logger(Callback):
    def __init__(self):
        self.rows = []

    def on_batch_end(self, trainer, loss):
        norm = sum(p.grad.norm() ** 2 for p in trainer.model.parameters()) ** 0.5
        self.rows.append((trainer.step, loss.detach().item(), norm.item()))


class Trainer:
    def __init__(self, model, lr, callbacks):
        self.model, self.callbacks, self.step = model, callbacks, 0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, lr * 10, total_steps=12)

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for x, y in loader:
                loss = nn.functional.cross_entropy(self.model(x), y)
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                self.step += 1
                for callback in self.callbacks:
                    callback.on_batch_end(self, loss)
            for callback in self.callbacks:
                callback.on_epoch_end(self)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        hits = sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)
        return hits / len(loader.dataset)


torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 7), torch.randint(0, 3, (60,)))
model = nn.Sequential(nn.Linear(7, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
trainer = Trainer(model, 1e-3, [Logger()])
trainer.fit(DataLoader(data, batch_size=15, shuffle=True), 3)
print(trainer.evaluate(DataLoader(data, batch_size=20)), len(trainer.callbacks[0].rows))
# /// correct transformer_lm_step
# ///
import torch
from torch import nn

torch.manual_seed(0)


class TinyLM(nn.Module):
    def __init__(self, vocab=30, width=16, length=12):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, width), nn.Embedding(length, width)
        layer = nn.TransformerEncoderLayer(width, 2, 32, dropout=0.1, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        h = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        return self.head(self.blocks(h, mask=mask, is_causal=True))


lm = TinyLM()
decay = [p for n, p in lm.named_parameters() if p.dim() > 1]
rest = [p for n, p in lm.named_parameters() if p.dim() <= 1]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
warm = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, s / 3))
for tokens in torch.randint(0, 30, (5, 4, 13)):
    loss = nn.functional.cross_entropy(lm(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
    warm.step()
    print(loss.item())
# /// correct transformer_seq2seq_padding_masks
# ///
import math

import torch
from torch import nn

torch.manual_seed(0)
PAD, BOS, EOS, V, D = 0, 1, 2, 14, 16


class PositionalEncoding(nn.Module):
    def __init__(self, d, max_len=30):
        super().__init__()
        pos = torch.arange(max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        pe = torch.zeros(max_len, d)
        pe[:, 0::2] = torch.sin(pos * div)
        pe[:, 1::2] = torch.cos(pos * div)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[: x.size(1)]


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(V, D, padding_idx=PAD), nn.Embedding(V, D, padding_idx=PAD)
        self.pe = PositionalEncoding(D)
        self.t = nn.Transformer(D, 2, 1, 1, 32, dropout=0.0, batch_first=True)
        self.gen = nn.Linear(D, V)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        h = self.t(
            self.pe(self.src(src) * math.sqrt(D)),
            self.pe(self.tgt(tgt) * math.sqrt(D)),
            tgt_mask=mask.isinf(),
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
        )
        return self.gen(h)


def batch(n=8):
    src, tgt = torch.full((n, 8), PAD), torch.full((n, 10), PAD)
    for i in range(n):
        k = int(torch.randint(3, 9, ()))
        s = torch.randint(3, V, (k,))
        src[i, :k] = s
        tgt[i, : k + 2] = torch.cat([torch.tensor([BOS]), s.flip(0), torch.tensor([EOS])])
    return src, tgt


model = Seq2Seq()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
for step in range(6):
    src, tgt = batch()
    logits = model(src, tgt[:, :-1])
    loss = criterion(logits.reshape(-1, V), tgt[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
# /// correct triplet_semi_hard_mining
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.PReLU(), nn.Linear(32, 8))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def batch_hard(emb, labels, margin=0.3):
    dist = torch.cdist(emb, emb)
    same = labels[:, None] == labels[None]
    eye = torch.eye(len(labels), dtype=torch.bool)
    ap = dist.masked_fill(~same | eye, 0.0).max(1).values
    an = dist.masked_fill(same, float("inf")).min(1).values
    loss = F.relu(ap - an + margin)
    active = (loss > 0).float().mean()
    return loss.mean(), active


centres = torch.randn(5, 8)
for step in range(10):
    labels = torch.arange(5).repeat_interleave(4)
    x = centres[labels] + 0.8 * torch.randn(20, 8)
    emb = F.normalize(net(x), dim=-1)
    loss, active = batch_hard(emb, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item(), active.item())
# /// correct two_losses_walk_one_trunk
# ///
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(6, 24), nn.ELU())
heads = nn.ModuleDict({"size": nn.Linear(24, 1), "kind": nn.Linear(24, 3)})
optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=3e-3)
history = {"size": [], "kind": []}
for _ in range(8):
    x = torch.randn(20, 6)
    h = trunk(x)
    losses = {
        "size": (heads["size"](h).squeeze(-1) - x.norm(dim=1)).pow(2).mean(),
        "kind": nn.functional.cross_entropy(heads["kind"](h), x[:, :3].argmax(1)),
    }
    optimizer.zero_grad()
    losses["size"].backward(retain_graph=True)
    losses["kind"].backward()
    optimizer.step()
    for name, loss in losses.items():
        history[name].append(loss.detach())
print({k: torch.stack(v).mean().item() for k, v in history.items()})
# /// correct uncertainty_weighted_depth_and_segmentation
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.seg, self.depth = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 1, 1)
        self.log_vars = nn.Parameter(torch.zeros(2))

    def forward(self, x):
        h = self.enc(x)
        return self.seg(h), self.depth(h)


model = TwoHeads()
opt = torch.optim.Adam(
    [
        {"params": [p for n, p in model.named_parameters() if n != "log_vars"]},
        {"params": [model.log_vars], "lr": 1e-2, "weight_decay": 0.0},
    ],
    lr=1e-3,
    weight_decay=1e-4,
)
for step in range(8):
    img = torch.rand(4, 3, 8, 8)
    label = (img.mean(1) * 4).long().clamp(max=3)
    label[:, 0] = 255
    depth = img[:, :1] * 2
    valid = depth > 0.1
    s, d = model(img)
    l_seg = F.cross_entropy(s, label, ignore_index=255)
    l_depth = (d - depth).abs()[valid].mean()
    losses = torch.stack([l_seg, l_depth])
    precision = torch.exp(-model.log_vars)
    total = (precision * losses + model.log_vars).sum()
    opt.zero_grad()
    total.backward()
    opt.step()
    print(step, l_seg.item(), l_depth.item(), model.log_vars.tolist())
# /// correct unet_dice
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def double(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
        nn.Conv2d(o, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.bottom, self.side = double(1, 6), double(6, 12), double(18, 6)
        self.head = nn.Conv2d(6, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.bottom(F.max_pool2d(a, 2))
        up = F.interpolate(b, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.side(torch.cat([a, up], 1)))


def dice(logits, mask):
    p = logits.sigmoid().flatten(1)
    m = mask.flatten(1)
    return 1 - ((2 * (p * m).sum(1) + 1) / (p.sum(1) + m.sum(1) + 1)).mean()


net = UNet()
opt = torch.optim.NAdam(net.parameters(), lr=1e-2)
best = None
for epoch in range(4):
    net.train()
    for _ in range(2):
        x = torch.rand(4, 1, 16, 16)
        mask = (x > 0.6).float()
        logits = net(x)
        loss = dice(logits, mask) + F.binary_cross_entropy_with_logits(logits, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        x = torch.rand(4, 1, 16, 16)
        iou = ((net(x) > 0) & (x > 0.6)).sum() / ((net(x) > 0) | (x > 0.6)).sum().clamp(min=1)
    best = iou if best is None or iou > best else best
    print(epoch, loss.item(), best.item())
# /// correct unet_segmentation_dice_plus_bce
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Conv2d(1, 8, 3, padding=1)
        self.d2 = nn.Conv2d(8, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.u1 = nn.Conv2d(16, 8, 3, padding=1)
        self.out = nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.relu(self.d1(x))
        b = F.relu(self.d2(F.max_pool2d(a, 2)))
        return self.out(F.relu(self.u1(torch.cat([self.up(b), a], 1))))


def dice_loss(logits, target, eps=1.0):
    p = logits.sigmoid().flatten(1)
    t = target.flatten(1)
    return (1 - (2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()


def blobs(n):
    yy, xx = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    c = torch.rand(n, 2) * 8
    m = (((yy - c[:, :1, None]) ** 2 + (xx - c[:, 1:, None]) ** 2) < 6).float().unsqueeze(1)
    return m + 0.3 * torch.randn_like(m), m


net = UNet()
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.PolynomialLR(opt, total_iters=10, power=0.9)
for it in range(10):
    x, m = blobs(6)
    logits = net(x)
    loss = F.binary_cross_entropy_with_logits(logits, m) + dice_loss(logits, m)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
net.eval()
with torch.no_grad():
    x, m = blobs(8)
    pred = (net(x).sigmoid() > 0.5).float()
    iou = (pred * m).sum() / ((pred + m) > 0).sum()
print(loss.item(), iou.item())
# /// correct unfreeze_and_rebuild_optimizer
# ///
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
checkpoint = {k: v.clone() for k, v in backbone.state_dict().items()}
backbone.load_state_dict(checkpoint)
model = nn.Sequential(backbone, nn.Linear(16, 2))
X, Y = torch.randn(64, 10), torch.randint(0, 2, (64,))
loss_fn = nn.CrossEntropyLoss()


def run(optimizer, epochs):
    for epoch in range(epochs):
        model.train()
        for i in torch.randperm(64).split(16):
            optimizer.zero_grad()
            loss = loss_fn(model(X[i]), Y[i])
            loss.backward()
            optimizer.step()
        print("lr", optimizer.param_groups[0]["lr"], "loss", loss.item())


for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
run(optimizer, 2)
for p in backbone.parameters():
    p.requires_grad = True
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
run(optimizer, 2)
# /// correct unfreeze_by_add_param_group
# ///
import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 16)])
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        for stage in self.stages:
            x = torch.relu(stage(x))
        return self.fc(x)


net = Classifier()
net.stages.requires_grad_(False)
opt = torch.optim.SGD(net.fc.parameters(), lr=0.1, momentum=0.9)
X = torch.randn(48, 8)
Y = X[:, :3].argmax(1)
schedule = {2: 2, 4: 1, 6: 0}
for epoch in range(8):
    if epoch in schedule:
        stage = net.stages[schedule[epoch]].requires_grad_(True)
        opt.add_param_group({"params": stage.parameters(), "lr": 0.1 * 0.5 ** (epoch // 2)})
    loss = nn.functional.cross_entropy(net(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, len(opt.param_groups), loss.item())
# /// correct vae_beta_annealing
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self, d=16, h=32, z=4):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21, self.fc22 = nn.Linear(h, z), nn.Linear(h, z)
        self.fc3, self.fc4 = nn.Linear(z, h), nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 16))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 16), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + beta * KLD


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train = (torch.rand(64, 1, 4, 4) > 0.5).float()
test = (torch.rand(16, 1, 4, 4) > 0.5).float()
for epoch in range(4):
    beta = min(1.0, epoch / 2)
    model.train()
    train_loss = 0
    for batch in train.split(16):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for batch in test.split(8):
            recon, mu, logvar = model(batch)
            test_loss += loss_function(recon, batch, mu, logvar, 1.0).item()
    print(f"epoch {epoch} train {train_loss / 64:.3f} test {test_loss / 16:.3f}")
with torch.no_grad():
    print(model.decode(torch.randn(2, 4)).mean())
# /// correct vae_gan_three_optimizers
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def mlp(*sizes):
    layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.LeakyReLU(0.2))]
    return nn.Sequential(*layers[:-1])


encoder, decoder, critic = mlp(12, 16, 8), mlp(4, 16, 12), mlp(12, 16, 1)
opt_e, opt_d, opt_c = (torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.9)) for m in (encoder, decoder, critic))


def hidden(x):
    return critic[1](critic[0](x))


for _ in range(4):
    real = torch.randn(16, 12).cumsum(1)
    mu, logvar = encoder(real).chunk(2, dim=1)
    z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
    fake, dreamt = decoder(z), decoder(torch.randn_like(z))

    opt_c.zero_grad()
    scores = critic(torch.cat([real, fake.detach(), dreamt.detach()])).squeeze(1)
    wanted = torch.cat([torch.ones(16), torch.zeros(32)])
    F.binary_cross_entropy_with_logits(scores, wanted).backward()
    opt_c.step()

    for p in critic.parameters():
        p.requires_grad_(False)
    similarity = F.mse_loss(hidden(fake), hidden(real).detach())
    prior = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    opt_e.zero_grad()
    (similarity + 0.01 * prior).backward(retain_graph=True, inputs=list(encoder.parameters()))
    opt_d.zero_grad()
    fool = F.softplus(-critic(fake)).mean() + F.softplus(-critic(dreamt)).mean()
    (0.5 * similarity + fool).backward(inputs=list(decoder.parameters()))
    opt_e.step()
    opt_d.step()
    for p in critic.parameters():
        p.requires_grad_(True)
# /// correct vq_vae_commitment
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)


class Quantizer(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(size, width))

    def forward(self, z):
        index = torch.cdist(z, self.codes).argmin(1)
        q = self.codes[index]
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


enc, dec, vq = nn.Linear(8, 4), nn.Linear(4, 8), Quantizer(6, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *vq.parameters()], lr=1e-2)
for x in torch.randn(4, 20, 8):
    q, extra, used = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + extra
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item(), used.unique().numel())
# /// correct vq_vae_ema_codebook
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class EMAQuantizer(nn.Module):
    def __init__(self, k=16, d=4, decay=0.9, eps=1e-5):
        super().__init__()
        self.decay, self.eps = decay, eps
        embed = torch.randn(k, d)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.zeros(k))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.pow(2).sum(1)
        ind = dist.argmin(1)
        onehot = F.one_hot(ind, len(self.embed)).type(flat.dtype)
        quant = F.embedding(ind, self.embed).view_as(z)
        if self.training:
            with torch.no_grad():
                self.cluster_size.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                size = (self.cluster_size + self.eps) / (n + len(self.embed) * self.eps) * n
                self.embed.copy_(self.embed_avg / size.unsqueeze(1))
        commit = (quant.detach() - z).pow(2).mean()
        quant = z + (quant - z).detach()
        return quant, commit, ind


encoder, quantizer, decoder = nn.Linear(8, 4), EMAQuantizer(), nn.Linear(4, 8)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
data = torch.randn(128, 8)
for epoch in range(3):
    for x in data.split(32):
        q, commit, ind = quantizer(encoder(x))
        recon = decoder(q)
        loss = F.mse_loss(recon, x) + 0.25 * commit
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item(), ind.unique().numel())
# /// correct wandering_agents_with_closures_and_schedules
# ///
import contextlib
from functools import partial

import torch
from torch import nn, optim

torch.manual_seed(0)


@contextlib.contextmanager
def frozen(*modules):
    saved = [(p, p.requires_grad) for m in modules for p in m.parameters()]
    try:
        for p, _ in saved:
            p.requires_grad_(False)
        yield
    finally:
        for p, flag in saved:
            p.requires_grad_(flag)


@contextlib.contextmanager
def averaged(model, shadow):
    backup = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(shadow)
    model.eval()
    yield model
    model.load_state_dict(backup)
    model.train()


policy = nn.Sequential(nn.Linear(3, 12), nn.Dropout(0.1), nn.Tanh(), nn.Linear(12, 1))
world = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 3))
make = {"policy": partial(optim.Adam, lr=3e-3), "world": partial(optim.SGD, lr=1e-2, momentum=0.5)}
opts = {name: make[name](globals()[name].parameters()) for name in make}
plans = {name: optim.lr_scheduler.ExponentialLR(opt, 0.95) for name, opt in opts.items()}
shadow = {k: v.clone() for k, v in policy.state_dict().items()}

for epoch in range(4):
    s = torch.randn(16, 3)
    with torch.no_grad():
        a = policy(s) + 0.1 * torch.randn(16, 1)
    real = s + 0.1 * torch.cat([a, a, -a], 1)
    opts["world"].zero_grad()
    (world(torch.cat([s, a], 1)) - real).square().mean().backward()
    opts["world"].step()

    with frozen(world):
        cost, here = torch.zeros(()), s
        for _ in range(3):
            move = policy(here)
            here = world(torch.cat([here, move], 1))
            cost = cost + here.square().mean() + 0.01 * move.square().mean()
        opts["policy"].zero_grad()
        cost.backward()
        opts["policy"].step()
    for plan in plans.values():
        plan.step()
    shadow = {k: 0.9 * shadow[k] + 0.1 * v for k, v in policy.state_dict().items()}
    with averaged(policy, shadow) as model, torch.no_grad():
        print(epoch, cost.item(), model(s).abs().mean().item())
# /// correct weight_norm_and_orthogonal_parametrizations
# ///
import torch
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.parametrizations import orthogonal, spectral_norm, weight_norm

torch.manual_seed(0)


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = weight_norm(nn.Linear(6, 12))
        self.b = orthogonal(nn.Linear(12, 12))
        self.c = nn.Linear(12, 12)
        parametrize.register_parametrization(self.c, "weight", Symmetric())
        self.d = spectral_norm(nn.Linear(12, 1))

    def forward(self, x):
        x = torch.tanh(self.a(x))
        x = x + torch.tanh(self.b(x))
        x = x + torch.tanh(self.c(x))
        return self.d(x)


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
x = torch.randn(64, 6)
y = (x[:, :1] * x[:, 1:2]).tanh()
for epoch in range(5):
    for i in torch.randperm(64).split(32):
        loss = (net(x[i]) - y[i]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
with torch.no_grad(), parametrize.cached():
    q = net.b.weight
    print((q.T @ q - torch.eye(12)).abs().max().item(), torch.equal(net.c.weight, net.c.weight.T))
# /// correct weighted_sampler_and_class_weights
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
X = torch.randn(120, 6)
Y = (X[:, 0] > 1).long()
counts = torch.bincount(Y).float()
sampler = WeightedRandomSampler((1 / counts)[Y], num_samples=96, replacement=True)
train = DataLoader(TensorDataset(X, Y), batch_size=16, sampler=sampler)
val = DataLoader(TensorDataset(X, Y), batch_size=40)
net = nn.Sequential(nn.Linear(6, 12), nn.LeakyReLU(), nn.Linear(12, 2))
criterion = nn.CrossEntropyLoss(weight=(counts.sum() / (2 * counts)).sqrt())
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, weight_decay=1e-5)
for epoch in range(3):
    net.train()
    loss_sum, n = 0.0, 0
    for x, y in train:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        loss_sum, n = loss_sum + loss.item() * x.size(0), n + x.size(0)
    net.eval()
    conf = torch.zeros(2, 2, dtype=torch.long)
    with torch.no_grad():
        for x, y in val:
            for t, p in zip(y, net(x).argmax(1)):
                conf[t, p] += 1
    recall = conf.diag().float() / conf.sum(1)
    print(epoch, loss_sum / n, recall.tolist())
# /// correct wgan_gp
# ///
import torch
from torch import nn

torch.manual_seed(0)
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    eps = torch.rand(real.size(0), 1)
    x = (eps * real + (1 - eps) * fake).requires_grad_(True)
    (g,) = torch.autograd.grad(D(x).sum(), x, create_graph=True)
    return ((g.norm(2, dim=1) - 1) ** 2).mean()


for step in range(4):
    for _ in range(2):
        real = torch.randn(12, 2) + 2
        fake = G(torch.randn(12, 4)).detach()
        d_loss = D(fake).mean() - D(real).mean() + 10 * gradient_penalty(real, fake)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
    g_loss = -D(G(torch.randn(12, 4))).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
print(d_loss.item(), g_loss.item())
# /// correct wgan_two_time_scale_critic_clipping
# ///
import torch
import torch.nn as nn

torch.manual_seed(3)
latent = 6
G = nn.Sequential(nn.Linear(latent, 24), nn.ReLU(), nn.Linear(24, 2))
D = nn.Sequential(nn.Linear(2, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g = torch.optim.RMSprop(G.parameters(), lr=1e-4)
opt_d = torch.optim.RMSprop(D.parameters(), lr=4e-4)
n_critic, clip = 3, 0.05


def real_batch(n=32):
    angle = torch.rand(n) * 6.283
    return torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2)


for it in range(8):
    for _ in range(n_critic):
        x = real_batch()
        with torch.no_grad():
            fake = G(torch.randn(32, latent))
        loss_d = D(fake).mean() - D(x).mean()
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        for p in D.parameters():
            p.data.clamp_(-clip, clip)
    opt_g.zero_grad()
    loss_g = -D(G(torch.randn(32, latent))).mean()
    loss_g.backward()
    opt_g.step()
    if it % 4 == 0:
        print(f"{it}: W={-loss_d.item():.4f} G={loss_g.item():.4f}")
# /// correct word2vec_negative_sampling
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class SkipGram(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.center = nn.Embedding(vocab, dim, sparse=True)
        self.context = nn.Embedding(vocab, dim, sparse=True)
        bound = 0.5 / dim
        self.center.weight.data.uniform_(-bound, bound)
        self.context.weight.data.uniform_(0, 0)

    def forward(self, c, pos, neg):
        v = self.center(c)
        pos_score = (v * self.context(pos)).sum(1)
        neg_score = torch.bmm(self.context(neg), v.unsqueeze(2)).squeeze(2)
        return -(F.logsigmoid(pos_score) + F.logsigmoid(-neg_score).sum(1)).mean()


vocab = 25
text = torch.randint(0, vocab, (300,))
freq = torch.bincount(text, minlength=vocab).float().pow(0.75)
model = SkipGram(vocab, 8)
opt = torch.optim.SGD(model.parameters(), lr=0.5)
total_steps, step = 16, 0
for epoch in range(2):
    for k in range(8):
        pos = torch.randint(2, 298, (32,))
        c, ctx = text[pos], text[pos + torch.tensor([-2, -1, 1, 2])[torch.randint(0, 4, (32,))]]
        neg = torch.multinomial(freq, 32 * 5, replacement=True).view(32, 5)
        for g in opt.param_groups:
            g["lr"] = 0.5 * (1 - step / total_steps)
        opt.zero_grad()
        loss = model(c, ctx, neg)
        loss.backward()
        opt.step()
        step += 1
    print(epoch, loss.item())
