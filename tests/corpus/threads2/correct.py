# /// correct adapter_under_a_frozen_denoiser
# families = ["graph-break", "flags"]
# resembles = "frozen parameters through which gradients pass"
# ///
import torch
import torch.nn as nn


class AdapterJob:
    def __init__(self):
        self.unet = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.unet.requires_grad_(False)
        self.adapter = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.SiLU(), nn.Conv2d(8, 1, 3, padding=1))
        self.optimizer = torch.optim.AdamW(self.adapter.parameters(), lr=1e-3)

    def step(self, images, sketch):
        noise, t = torch.randn_like(images), torch.rand(len(images), 1, 1, 1)
        noisy = (1 - t).sqrt() * images + t.sqrt() * noise
        pred = self.unet(torch.cat([noisy, self.adapter(sketch)], 1))
        loss = nn.functional.mse_loss(pred, noise)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(5)
job = AdapterJob()
print([job.step(torch.rand(3, 1, 6, 6), torch.rand(3, 1, 6, 6)) for _ in range(3)])
# /// correct adversarial_training_by_autograd_grad
# families = ["accumulation", "leaf"]
# resembles = "attack gradients that never touch the model's"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def pgd(model, x, y, eps=0.1, steps=3):
    delta = torch.empty_like(x).uniform_(-eps, eps)
    for _ in range(steps):
        delta.requires_grad_(True)
        loss = F.cross_entropy(model(x + delta), y)
        (grad,) = torch.autograd.grad(loss, delta)
        delta = (delta.detach() + 0.05 * grad.sign()).clamp(-eps, eps)
    return (x + delta).clamp(0, 1)


torch.manual_seed(14)
model = nn.Sequential(nn.Flatten(), nn.Linear(25, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in range(4):
    x, y = torch.rand(10, 1, 5, 5), torch.randint(0, 3, (10,))
    x_adv = pgd(model, x, y)
    loss = F.cross_entropy(model(x_adv), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct attention_transfer_to_a_frozen_teacher
# families = ["graph-break"]
# resembles = "only the teacher's maps are without graph"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.fc = nn.Conv2d(3, width, 3, padding=1), nn.Linear(width, 4)

    def forward(self, x):
        a = F.relu(self.conv(x))
        return self.fc(a.mean((2, 3))), F.normalize(a.pow(2).mean(1).flatten(1))


torch.manual_seed(0)
student, teacher = Net(4), Net(10).eval()
optimizer = torch.optim.SGD(student.parameters(), lr=0.05)
for _ in range(4):
    x, y = torch.rand(6, 3, 6, 6), torch.randint(0, 4, (6,))
    logits, mine = student(x)
    with torch.no_grad():
        _, theirs = teacher(x)
    loss = F.cross_entropy(logits, y) + 100 * (mine - theirs).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct augmentation_with_a_generator_of_its_own
# families = ["data"]
# resembles = "a seeded dataset that leaves the global state alone"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self, n, seed):
        self.x = torch.randn(n, 6)
        self.y = (self.x.sum(1) > 0).long()
        self.generator = torch.Generator().manual_seed(seed)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + 0.1 * torch.randn(6, generator=self.generator), self.y[i]


torch.manual_seed(56)
loader = DataLoader(Noisy(40, seed=5), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
# /// correct autoencoder_revives_dead_latents
# families = ["graph-break", "loss"]
# resembles = "a residual that is a constant target"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class SAE(nn.Module):
    def __init__(self, d=10, n=30, k=3):
        super().__init__()
        self.enc, self.dec, self.k = nn.Linear(d, n), nn.Linear(n, d), k
        self.register_buffer("idle", torch.zeros(n))

    def forward(self, x):
        pre = self.enc(x)
        top = pre.topk(self.k, -1)
        latents = torch.zeros_like(pre).scatter(-1, top.indices, F.relu(top.values))
        out = self.dec(latents)
        self.idle = torch.where(latents.detach().sum(0) > 0, 0.0, self.idle + 1)
        loss = F.mse_loss(out, x)
        dead = self.idle > 1
        if dead.any():
            revived = F.softplus(pre[:, dead]) @ self.dec.weight.T[dead]
            loss = loss + 0.1 * F.mse_loss(revived, (x - out).detach())
        return loss


torch.manual_seed(58)
sae = SAE()
opt = torch.optim.Adam(sae.parameters(), lr=3e-3)
for _ in range(8):
    loss = sae(torch.randn(32, 10))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct averaged_weights_swapped_for_validation
# families = ["identity"]
# resembles = "weights replaced for evaluation and put back"
# ///
import torch
import torch.nn as nn


class Average:
    def __init__(self, model, decay=0.8):
        self.model, self.decay = model, decay
        self.shadow = {k: v.detach().clone() for k, v in model.state_dict().items()}

    @torch.no_grad()
    def update(self):
        for k, v in self.model.state_dict().items():
            self.shadow[k].lerp_(v, 1 - self.decay)

    def __enter__(self):
        self.kept = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
        self.model.load_state_dict(self.shadow)

    def __exit__(self, *error):
        self.model.load_state_dict(self.kept)


torch.manual_seed(39)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
average, opt = Average(model), torch.optim.Adam(model.parameters(), lr=1e-2)
scores = []
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(24, 5)
        loss = nn.functional.mse_loss(model(x), x.prod(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        average.update()
    with average, torch.no_grad():
        x = torch.randn(50, 5)
        scores.append(nn.functional.mse_loss(model(x), x.prod(1, keepdim=True)).item())
print(scores)
# /// correct bias_prior_written_under_no_grad
# families = ["leaf", "in-place"]
# resembles = "views of parameters written before training"
# ///
import math

import torch
import torch.nn as nn


class Head(nn.Module):
    def __init__(self, anchors=2, classes=3):
        super().__init__()
        self.conv = nn.Conv2d(4, anchors * (classes + 1), 1)
        with torch.no_grad():
            bias = self.conv.bias.view(anchors, -1)
            bias[:, 0] += math.log(0.01 / 0.99)
            bias[:, 1:].fill_(math.log(0.6 / classes))

    def forward(self, x):
        return self.conv(x)


torch.manual_seed(32)
net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.SiLU(), Head())
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for _ in range(4):
    out = net(torch.rand(2, 3, 6, 6))
    loss = nn.functional.binary_cross_entropy_with_logits(out, (torch.rand_like(out) < 0.1).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct branch_gradient_limited_by_a_new_tensor
# families = ["hook"]
# resembles = "a hook that returns a changed copy"
# ///
import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth, self.pose, self.out = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x):
        a, b = self.depth(x), self.pose(x)
        if a.requires_grad:
            a.register_hook(lambda grad: grad.clamp(-0.05, 0.05))
        return self.out(torch.tanh(a + b))


torch.manual_seed(53)
model = Branches()
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(20, 4)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct burgers_residual_with_separate_inputs
# families = ["higher-order"]
# resembles = "second derivatives of a tanh net in a residual"
# ///
from types import SimpleNamespace

import torch
import torch.nn as nn

cfg = SimpleNamespace(nu=0.01, width=16, lr=1e-3, points=50, steps=5)


class Solution(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))

    def forward(self, x, t):
        return self.net(torch.cat([x, t], 1))


def d(y, x):
    return torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)[0]


torch.manual_seed(18)
u_net = Solution(cfg.width)
opt = torch.optim.Adam(u_net.parameters(), lr=cfg.lr)
for _ in range(cfg.steps):
    x = (2 * torch.rand(cfg.points, 1) - 1).requires_grad_()
    t = torch.rand(cfg.points, 1, requires_grad=True)
    u = u_net(x, t)
    u_x = d(u, x)
    residual = d(u, t) + u * u_x - cfg.nu * d(u_x, x)
    x0 = 2 * torch.rand(20, 1) - 1
    start = u_net(x0, torch.zeros_like(x0)) + torch.sin(torch.pi * x0)
    loss = residual.pow(2).mean() + start.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct byol_target_by_moving_average
# families = ["graph-break", "identity"]
# resembles = "a branch without graph and weights outside the optimizer"
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(2)
online = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.SGD([*online.parameters(), *predictor.parameters()], lr=0.05, momentum=0.9)


@torch.no_grad()
def follow(tau=0.95):
    for t, o in zip(target.parameters(), online.parameters()):
        t.lerp_(o, 1 - tau)


def distance(p, z):
    return 2 - 2 * F.cosine_similarity(p, z, dim=1).mean()


for step in range(6):
    x = torch.randn(16, 10)
    one, two = x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x)
    with torch.no_grad():
        z1, z2 = target(one), target(two)
    loss = distance(predictor(online(one)), z2) + distance(predictor(online(two)), z1)
    opt.zero_grad()
    loss.backward()
    opt.step()
    follow()
print(loss.item())
# /// correct clipped_policy_with_stored_log_probs
# families = ["graph-break", "loss"]
# resembles = "rollout quantities are constants, the ratio is not"
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(6)
body, pi, v = nn.Sequential(nn.Linear(4, 16), nn.Tanh()), nn.Linear(16, 2), nn.Linear(16, 1)
params = [*body.parameters(), *pi.parameters(), *v.parameters()]
optim = torch.optim.Adam(params, lr=3e-3)


@torch.no_grad()
def rollout(n=40):
    obs = torch.randn(n, 4)
    h = body(obs)
    dist = Categorical(logits=pi(h))
    act = dist.sample()
    ret = (act == (obs[:, 0] > 0)).float()
    return obs, act, dist.log_prob(act), ret, ret - v(h).squeeze(1)


for epoch in range(2):
    obs, act, old, ret, adv = rollout()
    for _ in range(3):
        h = body(obs)
        dist = Categorical(logits=pi(h))
        ratio = (dist.log_prob(act) - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        loss = -torch.min(ratio * adv, clipped * adv).mean() + 0.5 * (v(h).squeeze(1) - ret).pow(2).mean()
        loss = loss - 0.01 * dist.entropy().mean()
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(params, 0.5)
        optim.step()
print(loss.item())
# /// correct counts_by_softplus_from_zero_bias
# families = ["scale"]
# resembles = "positive outputs and zero biases at the start"
# ///
import torch
import torch.nn as nn


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        linear = nn.Linear(i, o)
        nn.init.kaiming_normal_(linear.weight, nonlinearity="relu")
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ReLU()]
    return nn.Sequential(*layers[:-1], nn.Softplus())


torch.manual_seed(49)
net = mlp(5, 24, 24, 1)
opt = torch.optim.Adam(net.parameters(), lr=3e-3)
for region in range(6):
    features, built = torch.rand(4, 30, 5), (torch.rand(4, 30, 1) < 0.4).float()
    people = (net(features) * built).sum((1, 2))
    loss = nn.functional.l1_loss(people.add(1).log(), torch.rand(4).mul(50).add(1).log())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct cycle_translation_with_identity_term
# families = ["loss", "accumulation"]
# resembles = "six terms over two generators, walked back once"
# ///
import itertools

import torch
import torch.nn as nn

torch.manual_seed(43)
g_ab, g_ba = nn.Linear(6, 6), nn.Linear(6, 6)
d_a, d_b = nn.Linear(6, 1), nn.Linear(6, 1)
g_opt = torch.optim.Adam(itertools.chain(g_ab.parameters(), g_ba.parameters()), lr=1e-3)
d_opt = torch.optim.Adam(itertools.chain(d_a.parameters(), d_b.parameters()), lr=1e-3)
l1, mse = nn.L1Loss(), nn.MSELoss()
one, zero = torch.ones(10, 1), torch.zeros(10, 1)
for step in range(4):
    a, b = torch.randn(10, 6), torch.randn(10, 6) + 2
    fake_b, fake_a = g_ab(a), g_ba(b)
    adversarial = mse(d_b(fake_b), one) + mse(d_a(fake_a), one)
    cycle = l1(g_ba(fake_b), a) + l1(g_ab(fake_a), b)
    identity = l1(g_ba(a), a) + l1(g_ab(b), b)
    g_opt.zero_grad()
    (adversarial + 10 * cycle + 5 * identity).backward()
    g_opt.step()
    d_loss = mse(d_a(a), one) + mse(d_a(fake_a.detach()), zero) + mse(d_b(b), one) + mse(d_b(fake_b.detach()), zero)
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
print(cycle.item(), d_loss.item())
# /// correct delayed_policy_updates
# families = ["accumulation", "identity"]
# resembles = "the actor's pass fills the critic, whose next pass clears first"
# ///
import copy

import torch
from torch import nn


class Agent:
    def __init__(self):
        self.actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.actor_t, self.critic_t = copy.deepcopy(self.actor), copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), 1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), 1e-3)

    def update(self, it, s, a, r, s2):
        with torch.no_grad():
            y = r + 0.98 * self.critic_t(torch.cat([s2, self.actor_t(s2)], 1))
        critic_loss = nn.functional.mse_loss(self.critic(torch.cat([s, a], 1)), y)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        if it % 2 == 0:
            actor_loss = -self.critic(torch.cat([s, self.actor(s)], 1)).mean()
            self.actor_opt.zero_grad()
            actor_loss.backward()
            self.actor_opt.step()
            with torch.no_grad():
                for net, slow in ((self.actor, self.actor_t), (self.critic, self.critic_t)):
                    for p, q in zip(net.parameters(), slow.parameters()):
                        q.lerp_(p, 0.05)
        return critic_loss.item()


torch.manual_seed(13)
agent = Agent()
print([agent.update(i, torch.randn(16, 3), torch.rand(16, 1), torch.randn(16, 1), torch.randn(16, 3)) for i in range(6)])
# /// correct discrete_actor_with_straight_through
# families = ["graph-break"]
# resembles = "argmax and one-hot with the straight-through term"
# ///
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)
policy, critic = nn.Linear(5, 3), nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
pi_opt, q_opt = torch.optim.Adam(policy.parameters(), 3e-3), torch.optim.Adam(critic.parameters(), 3e-3)


def sample(logits):
    soft = F.gumbel_softmax(logits, tau=1.0)
    hard = F.one_hot(soft.argmax(-1), 3).float()
    return soft + (hard - soft).detach()


for frame in range(6):
    state, taken = torch.randn(16, 5), torch.randint(0, 3, (16,))
    q_loss = F.mse_loss(critic(torch.cat([state, F.one_hot(taken, 3).float()], 1)), torch.randn(16, 1))
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    critic.requires_grad_(False)
    pi_loss = -critic(torch.cat([state, sample(policy(state))], 1)).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    critic.requires_grad_(True)
print(pi_loss.item())
# /// correct double_precision_parameters_from_the_start
# families = ["leaf"]
# resembles = "a cast that happens before the Parameter is made"
# ///
import torch
import torch.nn as nn


class Wide(nn.Module):
    def __init__(self, sizes, dense, dtype=torch.float64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, 1) for n in sizes).to(dtype)
        self.weight = nn.Parameter(torch.randn(dense, 1).mul(0.01).to(dtype))

    def forward(self, sparse, dense):
        return sum(t(sparse[:, i]) for i, t in enumerate(self.tables)) + dense @ self.weight


torch.manual_seed(31)
model = Wide([5, 7], 3)
optim = torch.optim.Adagrad(model.parameters(), lr=0.1)
for _ in range(5):
    sparse = torch.stack([torch.randint(0, 5, (20,)), torch.randint(0, 7, (20,))], 1)
    dense = torch.randn(20, 3, dtype=torch.float64)
    loss = nn.functional.binary_cross_entropy_with_logits(model(sparse, dense).squeeze(1), (dense[:, 0] > 0).double())
    optim.zero_grad()
    loss.backward()
    optim.step()
print(loss.item())
# /// correct double_q_learning_with_polyak_target
# families = ["identity"]
# resembles = "a second network that no optimizer has"
# ///
import copy

import torch
from torch import nn


class DoubleDQN:
    def __init__(self, obs=4, acts=3):
        self.online = nn.Sequential(nn.Linear(obs, 24), nn.ReLU(), nn.Linear(24, acts))
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.opt = torch.optim.NAdam(self.online.parameters(), lr=3e-3)

    def learn(self, s, a, r, s2, done):
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            y = r + 0.95 * (1 - done) * self.target(s2).gather(1, best).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        slow, fast = self.target.state_dict(), self.online.state_dict()
        self.target.load_state_dict({k: 0.9 * slow[k] + 0.1 * fast[k] for k in slow})
        return loss.item()


torch.manual_seed(38)
agent = DoubleDQN()
for _ in range(8):
    s = torch.randn(20, 4)
    value = agent.learn(s, torch.randint(0, 3, (20,)), s[:, 0], s + 0.1, (torch.rand(20) < 0.1).float())
print(value)
# /// correct encoder_with_bounded_log_variance
# families = ["numerics", "loss"]
# resembles = "exponentials of a clamped tensor"
# ///
import torch
from torch import nn


class VAE(nn.Module):
    def __init__(self, d=8, h=16, z=3):
        super().__init__()
        self.enc, self.dec = nn.Linear(d, h), nn.Sequential(nn.Linear(z, h), nn.ReLU(), nn.Linear(h, d))
        self.mu, self.logvar = nn.Linear(h, z), nn.Linear(h, z)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h).clamp(-10, 10)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        kl = 0.5 * (mu.pow(2) + logvar.exp() - 1 - logvar).sum(1).mean()
        return nn.functional.mse_loss(self.dec(z), x, reduction="none").sum(1).mean() + kl


torch.manual_seed(47)
model = VAE()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(6):
    loss = model(torch.randn(24, 8))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct episodes_collected_without_graph
# families = ["retention"]
# resembles = "a buffer of tensors from the policy"
# ///
from collections import deque

import torch
import torch.nn as nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.q = nn.GRUCell(4, 12), nn.Linear(12, 3)

    def forward(self, obs, h):
        h = self.rnn(obs, h)
        return self.q(h), h


@torch.no_grad()
def run_episode(agent, length=5):
    h, steps = torch.zeros(2, 12), []
    for _ in range(length):
        obs = torch.randn(2, 4)
        q, h = agent(obs, h)
        steps.append({"obs": obs, "act": q.argmax(1), "hidden": h, "rew": torch.rand(2)})
    return steps


torch.manual_seed(8)
agent, buffer = Agent(), deque(maxlen=20)
opt = torch.optim.RMSprop(agent.parameters(), lr=1e-3)
for episode in range(6):
    buffer.append(run_episode(agent))
    h, loss = torch.zeros(2, 12), 0.0
    for step in buffer[-1]:
        q, h = agent(step["obs"], h)
        loss = loss + (q.gather(1, step["act"].unsqueeze(1)).squeeze(1) - step["rew"]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), len(buffer))
# /// correct features_by_hooks_that_are_removed
# families = ["hook", "retention"]
# resembles = "hooks registered in a loop and removed in it"
# ///
from contextlib import contextmanager

import torch
import torch.nn as nn


@contextmanager
def features(model, names):
    found, handles = {}, []
    for name in names:
        def hook(module, inputs, output, name=name):
            found[name] = output
        handles.append(model.get_submodule(name).register_forward_hook(hook))
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


torch.manual_seed(52)
encoder = nn.Sequential(nn.Conv2d(1, 4, 3), nn.LeakyReLU(0.1), nn.Conv2d(4, 4, 3)).requires_grad_(False)
latent = torch.zeros(1, 1, 8, 8, requires_grad=True)
opt = torch.optim.Adam([latent], lr=0.1)
with torch.no_grad(), features(encoder, ["0", "2"]) as target:
    encoder(torch.rand(1, 1, 8, 8))
for it in range(5):
    with features(encoder, ["0", "2"]) as got:
        encoder(latent)
    loss = sum(nn.functional.mse_loss(got[k], target[k]) for k in target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct frozen_text_encoder_with_trained_projection
# families = ["graph-break", "flags"]
# resembles = "no_grad around the frozen encoder alone"
# ///
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    vocab: int = 30
    dim: int = 12
    shared: int = 6


class Towers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.language = nn.EmbeddingBag(cfg.vocab, cfg.dim).requires_grad_(False)
        self.image, self.text_proj = nn.Linear(20, cfg.shared), nn.Linear(cfg.dim, cfg.shared)

    def forward(self, pixels, tokens):
        with torch.no_grad():
            pooled = self.language(tokens)
        a, b = self.image(pixels), self.text_proj(pooled)
        return nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T / 0.2


torch.manual_seed(1)
cfg = Config()
model = Towers(cfg)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(5):
    scores = model(torch.randn(8, 20), torch.randint(0, cfg.vocab, (8, 5)))
    loss = nn.functional.cross_entropy(scores, torch.arange(8))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct gathered_texts_with_own_part_restored
# families = ["distributed", "graph-break"]
# resembles = "all_gather without gradient, the own part put back"
# ///
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def gather(own):
    parts = [torch.zeros_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own.detach().contiguous())
    parts[dist.get_rank()] = own
    return torch.cat(parts)


torch.manual_seed(55)
image, text = nn.Linear(12, 6), nn.Linear(9, 6)
opt = torch.optim.AdamW([*image.parameters(), *text.parameters()], lr=1e-2)
for it in range(4):
    a = F.normalize(image(torch.randn(8, 12)), dim=1)
    b = F.normalize(text(torch.randn(8, 9)), dim=1)
    truth = torch.arange(8) + 8 * dist.get_rank()
    loss = F.cross_entropy(a @ gather(b).T / 0.3, truth) + F.cross_entropy(b @ gather(a).T / 0.3, truth)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
dist.destroy_process_group()
# /// correct generator_first_then_critic
# families = ["in-place", "accumulation"]
# resembles = "both losses of one pass are walked back before any weights are written"
# ///
import torch
from torch import nn

torch.manual_seed(34)
G = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 8))
D = nn.Sequential(nn.Linear(8, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g, opt_d = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
for step in range(5):
    real, fake = torch.randn(16, 8).cumsum(1), G(torch.randn(16, 4))
    d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = bce(D(fake), ones)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
print(d_loss.item(), g_loss.item())
# /// correct gradients_at_two_points_compared
# families = ["leaf"]
# resembles = "gradients of inputs that are made leaves"
# ///
import torch
from torch import nn

torch.manual_seed(30)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()


def input_gradient(x, y):
    x = x.detach().clone().requires_grad_(True)
    (grad,) = torch.autograd.grad(criterion(model(x), y), x)
    return grad


for step in range(4):
    x, y = torch.randn(12, 8), torch.randint(0, 3, (12,))
    first = input_gradient(x, y)
    second = input_gradient(x + 0.1 * first.sign(), y)
    alignment = nn.functional.cosine_similarity(first, second, dim=1).mean()
    loss = criterion(model(x + 0.1 * first.sign()), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(alignment.item())
# /// correct language_model_with_ignored_padding
# families = ["loss"]
# resembles = "labels shifted once, padding ignored"
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class LMConfig:
    vocab: int = 24
    dim: int = 16
    pad: int = 0
    lr: float = 1e-2


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=cfg.pad)
        self.rnn, self.head = nn.LSTM(cfg.dim, cfg.dim, batch_first=True), nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids, labels):
        logits = self.head(self.rnn(self.embed(ids))[0])
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


torch.manual_seed(42)
cfg = LMConfig()
model = TinyLM(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
for step in range(5):
    ids = (torch.randint(1, 24, (6, 1)) + torch.arange(8)) % 23 + 1
    for row in range(6):
        ids[row, 8 - row % 3 :] = cfg.pad
    loss = model(ids, ids.masked_fill(ids == cfg.pad, -100))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct layers_thawed_one_by_one
# families = ["flags", "optimizer"]
# resembles = "frozen layers join the optimizer as groups when they are thawed"
# ///
import torch
from torch import nn

torch.manual_seed(20)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(6, 6), nn.ReLU()) for _ in range(3))
head = nn.Linear(6, 2)
blocks.requires_grad_(False)
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)


def forward(x):
    for block in blocks:
        x = x + block(x)
    return head(x)


for epoch in range(4):
    if epoch:
        block = blocks[-epoch]
        block.requires_grad_(True)
        optimizer.add_param_group({"params": block.parameters(), "lr": 1e-3})
    for _ in range(3):
        x = torch.randn(16, 6)
        loss = nn.functional.cross_entropy(forward(x), (x[:, 0] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item(), len(optimizer.param_groups))
# /// correct log_partition_function_with_its_gradient
# families = ["function"]
# resembles = "a Function whose backward uses what it was handed"
# ///
import torch
from torch import nn


class TotalScore(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        ctx.save_for_backward(scores)
        return scores.logsumexp(-1).sum(1)

    @staticmethod
    def backward(ctx, grad_output):
        (scores,) = ctx.saved_tensors
        return scores.softmax(-1) * grad_output.view(-1, 1, 1)


torch.manual_seed(51)
assert torch.autograd.gradcheck(TotalScore.apply, (torch.randn(2, 3, 4, dtype=torch.double, requires_grad=True),))
net = nn.Linear(5, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    phones = torch.randint(0, 4, (6, 7))
    out = net(torch.nn.functional.one_hot(phones, 5).float() + 0.2 * torch.randn(6, 7, 5))
    loss = (TotalScore.apply(out) - out.gather(2, phones.unsqueeze(2)).sum((1, 2))).mean() / 7
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct low_rank_adapters_alone_are_trained
# families = ["flags", "optimizer"]
# resembles = "most parameters frozen, one factor starts at zero"
# ///
import torch
import torch.nn as nn


class LoRA(nn.Module):
    def __init__(self, base, rank=2, alpha=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.down.T) @ self.up.T


torch.manual_seed(21)
model = nn.Sequential(LoRA(nn.Linear(8, 16)), nn.GELU(), LoRA(nn.Linear(16, 4)))
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=1e-2)
for step in range(6):
    x, y = torch.randn(20, 8), torch.randint(0, 4, (20,))
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trained, 1.0)
    optimizer.step()
print(loss.item(), sum(p.numel() for p in trained))
# /// correct memory_of_features_by_index
# families = ["data", "retention"]
# resembles = "outputs of the last epoch looked up by sample"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(57)
x, y = torch.randn(30, 8), torch.randint(0, 3, (30,))
loader = DataLoader(TensorDataset(x, y, torch.arange(30)), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
ensemble = torch.zeros(30, 3)
for epoch in range(3):
    for a, b, index in loader:
        logits = model(a)
        probs = logits.softmax(1)
        consistency = F.mse_loss(probs, ensemble[index]) if epoch else 0.0
        loss = F.cross_entropy(logits, b) + 0.5 * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        ensemble[index] = 0.6 * ensemble[index] + 0.4 * probs.detach()
print(loss.item())
# /// correct mode_switch_that_spares_frozen_norms
# families = ["mode", "flags"]
# resembles = "train() keeps batch norms in evaluation mode on purpose"
# ///
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 3)
        self.conv.requires_grad_(False)
        self.bn.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.bn.eval()
        return self

    def forward(self, x):
        return self.head(torch.relu(self.bn(self.conv(x))).mean((2, 3)))


torch.manual_seed(22)
net = Backbone()
optimizer = torch.optim.SGD(net.head.parameters(), lr=0.1)
for epoch in range(2):
    net.train()
    for _ in range(3):
        loss = nn.functional.cross_entropy(net(torch.rand(6, 3, 7, 7)), torch.randint(0, 3, (6,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        score = net(torch.rand(6, 3, 7, 7)).argmax(1).float().mean()
print(loss.item(), score.item())
# /// correct node_memory_detached_after_each_batch
# families = ["retention"]
# resembles = "a state that goes from batch to batch as values"
# ///
import torch
import torch.nn as nn


class Memory(nn.Module):
    def __init__(self, nodes, dim):
        super().__init__()
        self.cell = nn.GRUCell(dim, dim)
        self.register_buffer("state", torch.zeros(nodes, dim))

    def forward(self, nodes, message):
        return self.cell(message, self.state[nodes])

    @torch.no_grad()
    def store(self, nodes, new):
        self.state[nodes] = new


torch.manual_seed(10)
memory, encode, score = Memory(12, 6), nn.Linear(3, 6), nn.Linear(6, 1)
opt = torch.optim.Adam([*memory.parameters(), *encode.parameters(), *score.parameters()], lr=1e-2)
for batch in range(5):
    nodes, event = torch.randperm(12)[:5], torch.randn(5, 3)
    new = memory(nodes, encode(event))
    loss = nn.functional.binary_cross_entropy_with_logits(score(new).squeeze(1), (event[:, 0] > 0).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
    memory.store(nodes, new)
print(loss.item(), memory.state.norm().item())
# /// correct one_rank_accumulates_without_sync
# families = ["distributed", "accumulation"]
# resembles = "no_sync for all but the last micro-batch"
# ///
import contextlib

import torch
import torch.distributed as dist
import torch.nn as nn

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(54)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
window = 3
for step in range(3):
    opt.zero_grad()
    for part in range(window):
        x, y = torch.randn(8, 6), torch.randint(0, 3, (8,))
        last = part == window - 1
        with contextlib.nullcontext() if last else model.no_sync():
            loss = nn.functional.cross_entropy(model(x), y) / window
            loss.backward()
    opt.step()
print(loss.item())
dist.destroy_process_group()
# /// correct parameter_list_used_for_step_and_clip
# families = ["optimizer"]
# resembles = "one list for the optimizer and for clipping"
# ///
import argparse

import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--max_grad_norm", type=float, default=0.5)
parser.add_argument("--lr", type=float, default=1e-2)
args = parser.parse_args([])

torch.manual_seed(36)
net = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 6))
net[0].weight.requires_grad_(False)
trained = list(filter(lambda p: p.requires_grad, net.parameters()))
optimizer = torch.optim.AdamW(trained, lr=args.lr)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
for step in range(8):
    x = torch.randn(16, 6)
    loss = 10 * nn.functional.mse_loss(net(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(trained, args.max_grad_norm)
    optimizer.step()
    schedule.step()
print(loss.item(), schedule.get_last_lr())
# /// correct points_projected_with_safe_depth
# families = ["numerics"]
# resembles = "where() on both sides of a division"
# ///
import torch
from torch import nn

torch.manual_seed(45)
pose = nn.Linear(3, 3)
opt = torch.optim.Adam(pose.parameters(), lr=1e-2)


def project(points, eps=1e-6):
    z = points[:, 2:]
    visible = z > eps
    safe = torch.where(visible, z, torch.ones_like(z))
    return torch.where(visible, points[:, :2] / safe, torch.zeros_like(points[:, :2])), visible.squeeze(1)


for step in range(5):
    world = torch.randn(30, 3)
    world[:3, 2] = 0
    pixels, visible = project(pose(world) + torch.tensor([0.0, 0.0, 1.0]))
    loss = (pixels - world[:, :2])[visible].abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct proximal_steps_on_a_plain_tensor
# families = ["leaf", "in-place"]
# resembles = "manual descent in place under no_grad"
# ///
import torch
import torch.nn.functional as F

torch.manual_seed(33)
down, gate = torch.randn(4, 8), torch.randn(8, 10)
target = down @ F.silu(gate) + 0.1 * torch.randn(4, 10)
s = gate.clone().requires_grad_(True)
history = []
for epoch in range(12):
    recon, prox = F.mse_loss(down @ F.silu(s), target), F.mse_loss(s, gate)
    loss = 5 * recon + prox
    loss.backward()
    history.append(loss.item())
    with torch.no_grad():
        s -= 0.2 * s.grad
        s.grad.zero_()
print(history[0], history[-1], s.is_leaf)
# /// correct r1_penalty_every_second_step
# families = ["higher-order", "loss"]
# resembles = "a lazy penalty on gradients at real images"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
D = nn.Sequential(nn.Conv2d(1, 6, 3, 2), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(54, 1))
G = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))
d_opt, g_opt = torch.optim.Adam(D.parameters(), 1e-3), torch.optim.Adam(G.parameters(), 1e-3)
for it in range(4):
    real = torch.rand(6, 1, 8, 8) * 2 - 1
    fake = G(torch.randn(6, 4)).detach()
    d_loss = F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()
    if it % 2 == 0:
        real.requires_grad_(True)
        (grad,) = torch.autograd.grad(D(real).sum(), real, create_graph=True)
        d_loss = d_loss + 5.0 * grad.flatten(1).pow(2).sum(1).mean()
    d_opt.zero_grad()
    d_loss.backward()
    d_opt.step()
    g_loss = F.softplus(-D(G(torch.randn(6, 4)))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(d_loss.item(), g_loss.item())
# /// correct recurrent_net_with_orthogonal_start
# families = ["scale"]
# resembles = "a long recurrence with clipped gradients"
# ///
import torch
import torch.nn as nn


class Cell(nn.Module):
    def __init__(self, i, h):
        super().__init__()
        self.w_x, self.w_h = nn.Linear(i, h), nn.Linear(h, h, bias=False)
        nn.init.orthogonal_(self.w_h.weight)

    def forward(self, x, h):
        return torch.tanh(self.w_x(x) + self.w_h(h))


torch.manual_seed(48)
cell, out = Cell(2, 16), nn.Linear(16, 1)
params = [*cell.parameters(), *out.parameters()]
opt = torch.optim.RMSprop(params, lr=1e-3)
for step in range(5):
    seq = torch.rand(20, 12, 2)
    h = torch.zeros(12, 16)
    for x in seq:
        h = cell(x, h)
    loss = nn.functional.mse_loss(out(h).squeeze(1), seq[..., 0].mean(0))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
print(loss.item())
# /// correct reptile_moves_towards_adapted_copies
# families = ["higher-order", "identity"]
# resembles = "meta-learning without a gradient through the inner loop"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(16)
meta = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))


def inner(net, x, y, steps=4, lr=0.05):
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    for _ in range(steps):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()


for it in range(6):
    phase, x = 3 * torch.rand(1), torch.rand(20, 1) * 4 - 2
    learner = copy.deepcopy(meta)
    last = inner(learner, x, torch.sin(x + phase))
    with torch.no_grad():
        for m, l in zip(meta.parameters(), learner.parameters()):
            m.add_(l - m, alpha=0.3)
print(last)
# /// correct running_mean_of_losses_as_numbers
# families = ["retention"]
# resembles = "a moving average that weighs the loss of the next step"
# ///
import torch
from torch import nn

torch.manual_seed(9)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
ema = {"mean": 1.0, "spread": 1.0}
for it in range(10):
    x = torch.randn(20, 6)
    out = net(x)
    terms = {"mean": (out[:, 0] - x[:, 0]).pow(2).mean(), "spread": (out.var(0) - 1).pow(2).mean()}
    loss = sum(term / (ema[k] + 1e-3) for k, term in terms.items())
    opt.zero_grad()
    loss.backward()
    opt.step()
    for k, term in terms.items():
        ema[k] = 0.9 * ema[k] + 0.1 * term.item()
print(ema)
# /// correct scaler_with_clipping_and_skipped_steps
# families = ["numerics", "optimizer"]
# resembles = "unscale, clip, step and update in order, a step may be skipped"
# ///
import torch
import torch.nn as nn

torch.manual_seed(46)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
steps = 0
for it in range(6):
    x = torch.randn(20, 6) * (50 if it == 2 else 1)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(model.parameters(), 100.0)
    if norm < 50:
        scaler.step(optimizer)
        steps += 1
    scaler.update()
print(loss.item(), steps)
# /// correct scores_masked_and_scaled_in_place
# families = ["in-place", "numerics"]
# resembles = "in-place writes into results that backward does not need"
# ///
import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, keep):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2)
        scores.mul_(q.shape[-1] ** -0.5)
        scores.masked_fill_(~keep[:, None, None, :], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


torch.manual_seed(35)
attn, head = Attention(), nn.Linear(8, 3)
opt = torch.optim.Adam([*attn.parameters(), *head.parameters()], lr=1e-2)
for _ in range(4):
    x, y = torch.randn(5, 6, 8), torch.randint(0, 3, (5,))
    keep = torch.arange(6) < torch.randint(2, 7, (5, 1))
    loss = nn.functional.cross_entropy(head(attn(x, keep)[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct second_order_meta_learning
# families = ["higher-order"]
# resembles = "inner steps with a graph on explicit weights"
# ///
import torch
import torch.nn.functional as F

torch.manual_seed(15)
weights = [torch.randn(16, 1).requires_grad_(), torch.zeros(16, requires_grad=True),
           (0.2 * torch.randn(1, 16)).requires_grad_(), torch.zeros(1, requires_grad=True)]
meta_opt = torch.optim.Adam(weights, lr=1e-2)


def forward(x, w):
    return F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])


def adapt(x, y, w, steps=2, lr=0.05):
    for _ in range(steps):
        grads = torch.autograd.grad(F.mse_loss(forward(x, w), y), w, create_graph=True)
        w = [p - lr * g for p, g in zip(w, grads)]
    return w


for it in range(5):
    meta_loss = 0.0
    for task in range(3):
        phase, x = 3 * torch.rand(1), torch.rand(20, 1) * 4 - 2
        y = torch.sin(x + phase)
        meta_loss = meta_loss + F.mse_loss(forward(x[10:], adapt(x[:10], y[:10], weights)), y[10:])
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
print(meta_loss.item())
# /// correct set_regression_with_matching_shapes
# families = ["loss"]
# resembles = "an output column that is squeezed before the loss"
# ///
import torch
from torch import nn

torch.manual_seed(41)
phi = nn.Sequential(nn.Linear(1, 16), nn.ELU(), nn.Linear(16, 16))
rho = nn.Sequential(nn.ELU(), nn.Linear(16, 1))
opt = torch.optim.Adam([*phi.parameters(), *rho.parameters()], lr=3e-3)
for epoch in range(6):
    spread = torch.rand(20) + 0.2
    sets = torch.randn(20, 15, 1) * spread.view(-1, 1, 1)
    pred = rho(phi(sets).mean(1)).squeeze(-1)
    loss = (pred - spread.log()).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct speaker_adversary_by_reversal_function
# families = ["function"]
# resembles = "a backward that negates on purpose"
# ///
import torch
import torch.nn as nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None


torch.manual_seed(50)
encoder, decoder, speaker = nn.Linear(6, 10), nn.Linear(10, 6), nn.Linear(10, 4)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *speaker.parameters()], lr=1e-3)
for step in range(5):
    mel, who = torch.randn(12, 6), torch.randint(0, 4, (12,))
    code = torch.tanh(encoder(mel))
    adversary = nn.functional.cross_entropy(speaker(Reverse.apply(code, 0.2)), who)
    loss = nn.functional.l1_loss(decoder(code), mel) + adversary
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), adversary.item())
# /// correct student_learns_soft_and_hard_labels
# families = ["loss", "identity"]
# resembles = "a teacher without gradients and two temperatures"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Distiller:
    def __init__(self, student, teacher, alpha=0.4, temperature=3.0):
        self.student, self.teacher = student, teacher.eval()
        self.alpha, self.t = alpha, temperature
        self.optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)

    def train_step(self, x, y):
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / self.t, 1)
        logits = self.student(x)
        kd = F.kl_div(F.log_softmax(logits / self.t, 1), soft, reduction="batchmean") * self.t**2
        loss = self.alpha * F.cross_entropy(logits, y) + (1 - self.alpha) * kd
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(40)
job = Distiller(nn.Linear(8, 4), nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.2), nn.ReLU(), nn.Linear(32, 4)))
print([job.train_step(torch.randn(16, 8), torch.randint(0, 4, (16,))) for _ in range(4)])
# /// correct switch_router_with_balance_term
# families = ["graph-break", "loss"]
# resembles = "hard counts without gradient times mean probabilities with one"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Switch(nn.Module):
    def __init__(self, dim=8, experts=3):
        super().__init__()
        self.router = nn.Linear(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        top, index = probs.max(-1)
        hard = F.one_hot(index, probs.shape[-1]).float()
        out = sum(hard[:, e : e + 1] * expert(x) for e, expert in enumerate(self.experts))
        balance = probs.shape[-1] * (hard.mean(0) * probs.mean(0)).sum()
        return x + top.unsqueeze(1) * out, balance


torch.manual_seed(3)
layer, head = Switch(), nn.Linear(8, 5)
optimizer = torch.optim.Adam([*layer.parameters(), *head.parameters()], lr=1e-2)
for step in range(6):
    x, y = torch.randn(48, 8), torch.randint(0, 5, (48,))
    hidden, balance = layer(x)
    loss = F.cross_entropy(head(hidden), y) + 0.01 * balance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), balance.item())
# /// correct trainer_logs_numbers_and_detached_outputs
# families = ["retention"]
# resembles = "lists of outputs that hold no graph"
# ///
import torch
from torch import nn


class Trainer:
    def __init__(self, model, lr):
        self.model, self.optimizer = model, torch.optim.Adam(model.parameters(), lr=lr)
        self.outputs, self.history = [], []

    def step(self, x, y):
        pred = self.model(x)
        loss = nn.functional.mse_loss(pred, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.outputs.append({"loss": loss.detach(), "pred": pred.detach()})

    def end_epoch(self):
        self.history.append(torch.stack([o["loss"] for o in self.outputs]).mean().item())
        self.outputs.clear()


torch.manual_seed(7)
trainer = Trainer(nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)), 1e-2)
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(16, 4)
        trainer.step(x, x.sum(1, keepdim=True))
    trainer.end_epoch()
print(trainer.history)
# /// correct two_group_rates_through_one_cycle
# families = ["optimizer"]
# resembles = "groups with rates of their own, scheduled for each batch"
# ///
import torch
from torch import nn

torch.manual_seed(37)
backbone, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 2)
optimizer = torch.optim.SGD(
    [{"params": backbone.parameters()}, {"params": head.parameters()}], lr=1e-3, momentum=0.9
)
epochs, per_epoch = 2, 5
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=[1e-3, 1e-1], total_steps=epochs * per_epoch)
for epoch in range(epochs):
    for _ in range(per_epoch):
        x = torch.randn(16, 8)
        loss = nn.functional.cross_entropy(head(backbone(x)), (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
print(loss.item())
# /// correct uncertainty_by_dropout_at_test_time
# families = ["mode"]
# resembles = "functional dropout that is on in evaluation on purpose"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bayesian(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 24), nn.Linear(24, 1)

    def forward(self, x, sample=False):
        h = torch.relu(self.a(x))
        return self.b(F.dropout(h, 0.2, training=self.training or sample))


torch.manual_seed(44)
model = Bayesian()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(6):
    model.train()
    x = torch.randn(32, 3)
    loss = F.mse_loss(model(x), x[:, :1] ** 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()
with torch.no_grad():
    draws = torch.stack([model(torch.ones(4, 3), sample=True) for _ in range(10)])
print(draws.mean(0).squeeze(1), draws.std(0).squeeze(1))
# /// correct values_and_slopes_fitted_together
# families = ["higher-order"]
# resembles = "a derivative in the loss, with create_graph"
# ///
import torch
from torch import nn

torch.manual_seed(17)
model = nn.Sequential(nn.Linear(2, 24), nn.Softplus(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(8):
    x = torch.randn(40, 2, requires_grad=True)
    energy = model(x)
    force = -torch.autograd.grad(energy.sum(), x, create_graph=True)[0]
    with torch.no_grad():
        true_energy, true_force = x.pow(2).sum(1, keepdim=True), -2 * x
    loss = nn.functional.mse_loss(energy, true_energy) + nn.functional.mse_loss(force, true_force)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
# /// correct vqgan_with_two_cleared_optimizers
# families = ["accumulation"]
# resembles = "generator pass through the critic, cleared before the critic's own pass"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12)
encoder, decoder = nn.Linear(10, 4), nn.Linear(4, 10)
codebook = nn.Embedding(8, 4)
disc = nn.Sequential(nn.Linear(10, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
opt_g = torch.optim.Adam([*encoder.parameters(), *decoder.parameters(), *codebook.parameters()], lr=1e-3)
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3)
for images in torch.rand(5, 12, 10):
    z = encoder(images)
    code = codebook(torch.cdist(z, codebook.weight).argmin(1))
    vq = F.mse_loss(code, z.detach()) + 0.25 * F.mse_loss(z, code.detach())
    recon = decoder(z + (code - z).detach())
    g_loss = F.l1_loss(recon, images) + vq + 0.1 * (disc(recon) - 1).pow(2).mean()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()

    d_loss = disc(recon.detach()).pow(2).mean() + (disc(images) - 1).pow(2).mean()
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
print(g_loss.item(), d_loss.item())
# /// correct window_of_micro_batches_with_a_tail
# families = ["accumulation"]
# resembles = "several backward calls before a step, the last window shorter"
# ///
import torch
import torch.nn as nn

torch.manual_seed(11)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(44, 8), torch.randint(0, 3, (44,))
window, size = 4, 4
micro = list(zip(x.split(size), y.split(size)))
for epoch in range(2):
    for start in range(0, len(micro), window):
        group = micro[start : start + window]
        count = sum(len(b) for _, b in group)
        optimizer.zero_grad()
        for a, b in group:
            loss = nn.functional.cross_entropy(model(a), b, reduction="sum") / count
            loss.backward()
        optimizer.step()
print(loss.item())
