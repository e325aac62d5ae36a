# /// correct activation_checkpointing
# ///
"""Residual tower with non-reentrant activation checkpointing and dropout."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * dim, dim))

    def forward(self, x):
        return x + self.ff(self.norm(x))


class Tower(nn.Module):
    def __init__(self, dim=16, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList(Residual(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 4)

    def forward(self, x):
        for block in self.blocks:
            if self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return self.out(x)


torch.manual_seed(9)
tower = Tower()
opt = torch.optim.AdamW(tower.parameters(), lr=2e-3)
x = torch.randn(48, 16)
y = x[:, :4].argmax(1)
for step in range(15):
    opt.zero_grad()
    loss = F.cross_entropy(tower(x), y)
    loss.backward()
    opt.step()
tower.eval()
with torch.no_grad():
    print((tower(x).argmax(1) == y).float().mean().item())
# /// correct contrastive_simclr
# ///
"""SimCLR-style NT-Xent loss with in-batch negatives."""
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, d=24, z=8):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(d, 48), nn.ReLU(), nn.Linear(48, 32))
        self.g = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, z))

    def forward(self, x):
        return F.normalize(self.g(self.f(x)), dim=1)


def nt_xent(a, b, tau=0.2):
    z = torch.cat([a, b])
    sim = z @ z.t() / tau
    sim = sim.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
    n = len(a)
    partner = torch.cat([torch.arange(n) + n, torch.arange(n)])
    return F.cross_entropy(sim, partner)


def augment(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.1 * torch.randn_like(x)


torch.manual_seed(12)
enc = Encoder()
opt = torch.optim.Adam(enc.parameters(), lr=3e-3)
centres = torch.randn(6, 24) * 2
for step in range(25):
    x = centres[torch.randint(0, 6, (32,))] + torch.randn(32, 24)
    loss = nt_xent(enc(augment(x)), enc(augment(x)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct diffusion_denoiser
# ///
"""Denoising diffusion on two-dimensional points, sampling without gradients."""
import math

import torch
import torch.nn.functional as F
from torch import nn

T = 20


class Denoiser(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.time = nn.Embedding(T, 16)
        self.net = nn.Sequential(nn.Linear(2 + 16, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, 2))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.time(t)], dim=1))


def moons(n):
    theta = torch.rand(n) * math.pi
    upper = torch.rand(n) > 0.5
    x = torch.where(upper, theta.cos(), 1 - theta.cos())
    y = torch.where(upper, theta.sin(), 0.5 - theta.sin())
    return torch.stack([x, y], 1) + 0.05 * torch.randn(n, 2)


torch.manual_seed(14)
betas = torch.linspace(1e-3, 0.2, T)
alpha_bar = torch.cumprod(1 - betas, 0)
model = Denoiser()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(40):
    x0 = moons(128)
    t = torch.randint(0, T, (128,))
    noise = torch.randn_like(x0)
    a = alpha_bar[t].unsqueeze(1)
    xt = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = F.mse_loss(model(xt, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()


@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / (1 - betas[i]).sqrt()
        if i:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x


print(loss.item(), sample(4))
# /// correct ema_teacher
# ///
"""Mean teacher: an exponential moving average without gradients, consistency loss."""
import copy

import torch
import torch.nn.functional as F
from torch import nn


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def update_teacher(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)
    for t, s in zip(teacher.buffers(), student.buffers()):
        t.copy_(s)


torch.manual_seed(8)
student = Student()
teacher = copy.deepcopy(student)
for p in teacher.parameters():
    p.requires_grad_(False)
teacher.eval()
opt = torch.optim.SGD(student.parameters(), lr=0.05)
labelled_x, labelled_y = torch.randn(30, 10), torch.randint(0, 3, (30,))
for step in range(25):
    unlabelled = torch.randn(40, 10)
    student.train()
    with torch.no_grad():
        goal = teacher(unlabelled).softmax(-1)
    noisy = student(unlabelled + 0.1 * torch.randn_like(unlabelled))
    consistency = F.mse_loss(noisy.softmax(-1), goal)
    loss = F.cross_entropy(student(labelled_x), labelled_y) + 0.5 * consistency
    opt.zero_grad()
    loss.backward()
    opt.step()
    update_teacher(teacher, student, decay=min(0.99, 1 - 1 / (step + 2)))
print(loss.item())
# /// correct gan_detached_fake
# ///
"""Non-saturating GAN on 1-D data, fake detached in the discriminator step."""
import torch
from torch import nn

torch.manual_seed(2)
gen = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
disc = nn.Sequential(nn.Linear(1, 32), nn.LeakyReLU(0.1), nn.Linear(32, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)

for step in range(30):
    real = torch.randn(64, 1) * 0.4 + 2.0
    noise = torch.randn(64, 4)

    # discriminator: the generator takes no part
    fake = gen(noise)
    opt_d.zero_grad()
    d_loss = bce(disc(real), ones) + bce(disc(fake.detach()), zeros)
    d_loss.backward()
    opt_d.step()

    # generator: gradients also reach disc, they are cleared at its next step
    opt_g.zero_grad()
    g_loss = bce(disc(fake), ones)
    g_loss.backward()
    opt_g.step()

with torch.no_grad():
    print("mean of samples", gen(torch.randn(256, 4)).mean().item())
# /// correct gradient_accumulation
# ///
"""Gradient accumulation on purpose: four micro-batches per update, last group handled."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)
ACCUMULATE = 4
net = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
micro = [(torch.randn(8, 12), torch.randn(8, 1)) for _ in range(18)]
updates = 0
optimizer.zero_grad()
for i, (x, y) in enumerate(micro):
    group = min(ACCUMULATE, len(micro) - i // ACCUMULATE * ACCUMULATE)
    loss = F.mse_loss(net(x), y) / group
    loss.backward()
    if (i + 1) % ACCUMULATE == 0 or i + 1 == len(micro):
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        updates += 1
print("updates", updates, "last loss", loss.item() * group)
# /// correct lora_finetune
# ///
"""LoRA: frozen base weights, trainable low-rank factors, merge at the end."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank=2, alpha=4.0):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.a = nn.Parameter(torch.empty(rank, base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.a, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.a), self.b)

    @torch.no_grad()
    def merged(self):
        return self.base.weight + self.scale * self.b @ self.a


def inject(model, rank):
    for name, child in list(model.named_children()):
        if isinstance(child, nn.Linear):
            setattr(model, name, LoRALinear(child, rank))
        else:
            inject(child, rank)
    return model


torch.manual_seed(10)
model = inject(nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 5)), rank=2)
trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=0.0)
x = torch.randn(80, 12)
y = x[:, :5].argmax(1)
for step in range(25):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
print(len(trainable), loss.item(), model[0].merged().shape)
# /// correct maml_second_order
# ///
"""MAML with second-order gradients on sinusoids, functional_call for the adapted weights."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def task():
    amp, phase = torch.rand(1) * 4 + 1, torch.rand(1) * 3

    def draw(n):
        x = torch.rand(n, 1) * 10 - 5
        return x, amp * torch.sin(x + phase)

    return draw


torch.manual_seed(11)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
meta_opt = torch.optim.Adam(net.parameters(), lr=1e-3)
INNER = 0.02
for it in range(10):
    meta_loss = 0.0
    for _ in range(3):
        draw = task()
        params = dict(net.named_parameters())
        xs, ys = draw(10)
        inner_loss = F.mse_loss(functional_call(net, params, (xs,)), ys)
        grads = torch.autograd.grad(inner_loss, params.values(), create_graph=True)
        adapted = {k: p - INNER * g for (k, p), g in zip(params.items(), grads)}
        xq, yq = draw(10)
        meta_loss = meta_loss + F.mse_loss(functional_call(net, adapted, (xq,)), yq)
    meta_opt.zero_grad()
    (meta_loss / 3).backward()
    meta_opt.step()
print(meta_loss.item() / 3)
# /// correct mnist_like_cnn
# ///
"""Digits-like classification with a small CNN, validation and a step schedule."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SmallCNN(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(16 * 3 * 3, classes)

    def forward(self, x):
        x = F.max_pool2d(self.act(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(self.act(self.conv2(x)), 2)
        return self.fc(self.drop(x.flatten(1)))


def make_data(n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 5, (n,), generator=g)
    x = 0.3 * torch.randn(n, 1, 12, 12, generator=g)
    for i, c in enumerate(y.tolist()):
        x[i, 0, 2 * c:2 * c + 3, 2:10] += 1.0
    return TensorDataset(x, y)


def run_epoch(model, loader, optimizer):
    model.train()
    total, hits = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        hits += (logits.argmax(dim=1) == y).sum().item()
    return total / len(loader.dataset), hits / len(loader.dataset)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


torch.manual_seed(0)
train = DataLoader(make_data(120, 1), batch_size=20, shuffle=True)
valid = DataLoader(make_data(40, 2), batch_size=20)
model = SmallCNN()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
for epoch in range(3):
    loss, acc = run_epoch(model, train, optimizer)
    scheduler.step()
    print(f"{epoch}: loss {loss:.3f} train {acc:.2f} valid {evaluate(model, valid):.2f}")
# /// correct pinn_heat_equation
# ///
"""Physics-informed network for the 1-D heat equation u_t = a u_xx."""
import math

import torch
from torch import nn
from torch.autograd import grad

A = 0.1
torch.manual_seed(5)
net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.Adam(net.parameters(), lr=3e-3)


def derivative(out, wrt):
    return grad(out, wrt, grad_outputs=torch.ones_like(out), create_graph=True)[0]


def residual(n):
    x = torch.rand(n, 1, requires_grad=True)
    t = torch.rand(n, 1, requires_grad=True)
    u = net(torch.cat([x, t], dim=1))
    u_t = derivative(u, t)
    u_x = derivative(u, x)
    u_xx = derivative(u_x, x)
    return u_t - A * u_xx


def initial(n):
    x = torch.rand(n, 1)
    u = net(torch.cat([x, torch.zeros_like(x)], dim=1))
    return u - torch.sin(math.pi * x)


def boundary(n):
    t = torch.rand(n, 1)
    left = net(torch.cat([torch.zeros_like(t), t], dim=1))
    right = net(torch.cat([torch.ones_like(t), t], dim=1))
    return torch.cat([left, right])


history = []
for step in range(40):
    loss = residual(64).pow(2).mean() + initial(32).pow(2).mean() + boundary(16).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())
print(history[0], history[-1])
# /// correct reinforce_baseline
# ///
"""REINFORCE with a learned value baseline on a bandit with context."""
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self, n_ctx, n_arms):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_ctx, 32), nn.Tanh())
        self.pi = nn.Linear(32, n_arms)
        self.v = nn.Linear(32, 1)

    def forward(self, ctx):
        h = self.body(ctx)
        return Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)


torch.manual_seed(4)
net = ActorCritic(4, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
average = 0.0
for it in range(40):
    ctx = torch.eye(4)[torch.randint(0, 4, (64,))]
    dist, value = net(ctx)
    arm = dist.sample()
    reward = (arm == ctx.argmax(1)).float() + 0.1 * torch.randn(64)
    advantage = reward - value.detach()
    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
    policy_loss = -(dist.log_prob(arm) * advantage).mean()
    value_loss = (value - reward).pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    average = 0.9 * average + 0.1 * reward.mean().item()
print("average reward", round(average, 2))
# /// correct rnn_truncated_bptt
# ///
"""Character RNN with truncated backpropagation through time."""
import torch
import torch.nn.functional as F
from torch import nn

text = "abcabcabdabcabcabd" * 20
chars = sorted(set(text))
ids = torch.tensor([chars.index(c) for c in text])


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden=32):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16)
        self.rnn = nn.LSTM(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, vocab)

    def forward(self, tokens, state=None):
        y, state = self.rnn(self.emb(tokens), state)
        return self.out(y), state


def detach(state):
    return None if state is None else tuple(s.detach() for s in state)


torch.manual_seed(1)
net = CharRNN(len(chars))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
stream = ids[: (len(ids) - 1) // 4 * 4].view(4, -1)
CHUNK = 12
for epoch in range(2):
    state, losses = None, []
    for i in range(0, stream.size(1) - CHUNK - 1, CHUNK):
        x, y = stream[:, i:i + CHUNK], stream[:, i + 1:i + CHUNK + 1]
        state = detach(state)
        logits, state = net(x, state)
        loss = F.cross_entropy(logits.reshape(-1, len(chars)), y.reshape(-1))
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        losses.append(loss.item())
    print(epoch, sum(losses) / len(losses))
# /// correct saliency_and_fgsm
# ///
"""Input gradients: saliency map, adversarial example and a retained activation gradient."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, padding=1)
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        self.maps = F.relu(self.conv(x))
        return self.fc(self.maps.mean(dim=(2, 3)))


torch.manual_seed(13)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.rand(30, 1, 8, 8), torch.randint(0, 3, (30,))
for _ in range(10):
    opt.zero_grad()
    F.cross_entropy(net(x), y).backward()
    opt.step()

net.eval()
net.zero_grad(set_to_none=True)
image = x[:1].clone().requires_grad_(True)
logits = net(image)
net.maps.retain_grad()
F.cross_entropy(logits, y[:1]).backward()
saliency = image.grad.abs().amax(dim=1)
weights = net.maps.grad.mean(dim=(2, 3), keepdim=True)
cam = F.relu((weights * net.maps).sum(1)).detach()
adversarial = (image + 0.03 * image.grad.sign()).clamp(0, 1).detach()
with torch.no_grad():
    print(saliency.shape, cam.shape, net(adversarial).argmax(1))
# /// correct transfer_learning_frozen
# ///
"""Transfer learning: the pretrained trunk stays frozen on purpose, batch norm in eval mode."""
import torch
import torch.nn.functional as F
from torch import nn


def trunk():
    return nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())


class Probe(nn.Module):
    def __init__(self, backbone, classes):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(32, classes)
        for p in self.backbone.parameters():
            p.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        with torch.no_grad():
            h = self.backbone(x)
        return self.head(h)


torch.manual_seed(6)
pre = trunk()
tmp_head = nn.Linear(32, 16)
pre_opt = torch.optim.Adam([*pre.parameters(), *tmp_head.parameters()], lr=1e-2)
for _ in range(10):
    x = torch.randn(64, 16)
    pre_opt.zero_grad()
    F.mse_loss(tmp_head(pre(x)), x.roll(1, 1)).backward()
    pre_opt.step()
pre.zero_grad(set_to_none=True)

model = Probe(pre, 3)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
x, y = torch.randn(90, 16), torch.randint(0, 3, (90,))
x[:, 0] += y.float()
for epoch in range(10):
    model.train()
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("trainable", sum(p.numel() for p in model.parameters() if p.requires_grad), loss.item())
# /// correct variational_autoencoder
# ///
"""Gaussian VAE with a KL warm-up; prior samples at the end."""
import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self, d=20, h=32, z=4):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(d, h), nn.Tanh())
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)
        self.dec = nn.Sequential(nn.Linear(z, h), nn.Tanh(), nn.Linear(h, d))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h).clamp(-8, 8)

    def forward(self, x):
        mu, logvar = self.encode(x)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar

    @torch.no_grad()
    def sample(self, n):
        z = torch.randn(n, self.mu.out_features)
        return torch.sigmoid(self.dec(z))


def elbo_terms(logits, x, mu, logvar):
    rec = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1).mean()
    kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
    return rec, kl


torch.manual_seed(3)
protos = (torch.rand(4, 20) > 0.5).float()
vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=5e-3)
for step in range(40):
    which = torch.randint(0, 4, (32,))
    flip = (torch.rand(32, 20) < 0.05).float()
    x = (protos[which] - flip).abs()
    logits, mu, logvar = vae(x)
    rec, kl = elbo_terms(logits, x, mu, logvar)
    beta = min(1.0, step / 20)
    loss = rec + beta * kl
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 10 == 0:
        print(step, round(rec.item(), 2), round(kl.item(), 2))
print(vae.sample(2).round())
