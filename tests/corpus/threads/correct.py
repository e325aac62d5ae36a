# /// correct alternating_gan_clears_before_own_turn
# families = ["other-loss"]
# resembles = "both gradients pass through the discriminator"
# ///
import torch
from torch import nn

torch.manual_seed(31)
G = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 2))
D = nn.Sequential(nn.Linear(2, 12), nn.LeakyReLU(0.2), nn.Linear(12, 1))
g_opt, d_opt = (torch.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.99)) for m in (G, D))
bce = nn.BCEWithLogitsLoss()
for _ in range(8):
    real, z = torch.randn(16, 2) + 2, torch.randn(16, 3)
    fake = G(z)
    d_opt.zero_grad()
    (bce(D(real), torch.ones(16, 1)) + bce(D(fake.detach()), torch.zeros(16, 1))).backward()
    d_opt.step()
    g_opt.zero_grad()
    bce(D(fake), torch.ones(16, 1)).backward()
    g_opt.step()
# /// correct annealed_coefficient_as_tensor
# families = ["partial-cut"]
# resembles = "an untracked scalar tensor as a factor"
# ///
import math

import torch
from torch import nn

torch.manual_seed(7)
enc, dec = nn.Linear(8, 6), nn.Linear(3, 8)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
for step in range(12):
    beta = torch.tensor(0.5 * (1 - math.cos(math.pi * step / 12)))
    x = torch.randn(16, 8)
    mu, log_var = enc(x).chunk(2, -1)
    z = mu + torch.randn_like(mu) * (0.5 * log_var).exp()
    recon = (dec(z) - x).pow(2).sum(-1).mean()
    kl = -0.5 * (1 + log_var - mu.pow(2) - log_var.exp()).sum(-1).mean()
    opt.zero_grad()
    (recon + beta * kl).backward()
    opt.step()
print(recon.item(), kl.item())
# /// correct batchnorm_recalibration_pass
# families = ["evaluation"]
# resembles = "forward calls in training mode without a loss"
# ///
import torch
from torch import nn

torch.manual_seed(28)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
data = [(torch.randn(16, 4) + 1, torch.randint(0, 2, (16,))) for _ in range(5)]
for x, y in data * 2:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
net[1].reset_running_stats()
net[1].momentum = None
with torch.no_grad():
    for x, _ in data:
        net(x)
net.eval()
with torch.no_grad():
    print(sum((net(x).argmax(1) == y).sum().item() for x, y in data))
# /// correct best_weights_cloned
# families = ["identity"]
# resembles = "the best state is a copy"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(41)
net = nn.Linear(5, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, xv = torch.randn(32, 5), torch.randn(32, 5)
best, best_state = float("inf"), copy.deepcopy(net.state_dict())
for _ in range(15):
    opt.zero_grad()
    (net(x).squeeze(1) - x[:, 0]).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        val = (net(xv).squeeze(1) - xv[:, 0]).pow(2).mean().item()
    if val < best:
        best, best_state = val, copy.deepcopy(net.state_dict())
net.load_state_dict(best_state)
print(best)
# /// correct causal_attention_by_hand
# families = ["uncovered"]
# resembles = "a mask on the right axis"
# ///
import torch
from torch import nn

torch.manual_seed(54)


class Causal(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        future = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        return self.out(scores.masked_fill(future, float("-inf")).softmax(-1) @ v)


table, att, head = nn.Embedding(9, 12), Causal(), nn.Linear(12, 9)
opt = torch.optim.Adam([*table.parameters(), *att.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    ids = torch.randint(0, 9, (4, 8))
    logits = head(att(table(ids[:, :-1])))
    opt.zero_grad()
    nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()
    opt.step()
# /// correct checkpointed_dropout_with_rng
# families = ["experiment"]
# resembles = "checkpoint keeps the random state"
# ///
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(44)
blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.2)) for _ in range(3))
head = nn.Linear(8, 1)
opt = torch.optim.Adam([*blocks.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    x = torch.randn(8, 8)
    h = x
    for block in blocks:
        h = h + checkpoint(block, h, use_reentrant=False)
    loss = (head(h) - x.mean(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct clamped_log_std_inside_range
# families = ["uncovered"]
# resembles = "a clamp that does not bind"
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(58)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.log_std = nn.Linear(3, 2), nn.Parameter(torch.full((2,), -0.5))

    def forward(self, obs):
        return Normal(self.mu(obs), self.log_std.clamp(-5, 2).exp())


policy = Policy()
opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(8):
    obs = torch.randn(32, 3)
    dist = policy(obs)
    action = dist.rsample()
    loss = (action - obs[:, :2]).pow(2).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(policy.log_std.tolist())
# /// correct clear_once_per_window
# families = ["cause"]
# resembles = "zero_grad outside the inner loop, on purpose"
# ///
import torch
from torch import nn

torch.manual_seed(12)
net = nn.Linear(7, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
loader = [(torch.randn(8, 7), torch.randint(0, 3, (8,))) for _ in range(12)]
window = 4
for epoch in range(2):
    for start in range(0, len(loader), window):
        opt.zero_grad()
        for x, y in loader[start : start + window]:
            (nn.functional.cross_entropy(net(x), y) / window).backward()
        opt.step()
    print(epoch)
# /// correct decay_groups_without_norms
# families = ["uncovered"]
# resembles = "two groups that share no parameter"
# ///
import torch
from torch import nn

torch.manual_seed(51)
net = nn.Sequential(nn.Embedding(10, 8), nn.LayerNorm(8), nn.Linear(8, 10))
decay = [p for p in net.parameters() if p.ndim > 1]
rest = [p for p in net.parameters() if p.ndim <= 1]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3)
for _ in range(6):
    ids = torch.randint(0, 10, (4, 7))
    loss = nn.functional.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(sum(p.numel() for g in opt.param_groups for p in g["params"]))
# /// correct distillation_with_temperature
# families = ["uncovered"]
# resembles = "kl_div with log input and a probability target"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(57)
teacher = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4)).eval().requires_grad_(False)
student = nn.Linear(6, 4)
opt = torch.optim.Adam(student.parameters(), lr=1e-2)
t = 2.0
for _ in range(8):
    x, y = torch.randn(16, 6), torch.randint(0, 4, (16,))
    logits = student(x)
    soft = F.kl_div(F.log_softmax(logits / t, -1), F.softmax(teacher(x) / t, -1), reduction="batchmean") * t * t
    loss = 0.7 * soft + 0.3 * F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct ema_weights_outside_optimizer
# families = ["optimizer-time", "identity"]
# resembles = "an average kept by hand"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(19)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 5))
average = copy.deepcopy(net).requires_grad_(False)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(10):
    x = torch.randn(16, 5)
    opt.zero_grad()
    (net(x + 0.1 * torch.randn_like(x)) - x).pow(2).mean().backward()
    opt.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), net.parameters()):
            slow.lerp_(fast, 0.05)
print((average(x) - net(x)).abs().max().item())
# /// correct finetune_with_batchnorm_in_eval
# families = ["cause"]
# resembles = "training with batch norm deliberately in eval"
# ///
import torch
from torch import nn

torch.manual_seed(11)


class Finetune(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.head = nn.Linear(12, 2)

    def train(self, mode=True):
        super().train(mode)
        self.body[1].eval()
        return self

    def forward(self, x):
        return self.head(self.body(x))


net = Finetune()
net.body[1].requires_grad_(False)
opt = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-3)
net.train()
for _ in range(6):
    opt.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 2, (8,))).backward()
    opt.step()
# /// correct flooding_loss
# families = ["partial-cut"]
# resembles = "the loss enters its own constant"
# ///
import torch
from torch import nn

torch.manual_seed(1)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
flood = 0.3
history = []
for _ in range(20):
    x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))
    loss = nn.functional.cross_entropy(net(x), y)
    flooded = (loss - flood).abs() + flood
    opt.zero_grad()
    flooded.backward()
    opt.step()
    history.append(loss.item())
print(sum(history) / len(history))
# /// correct focal_weights_detached
# families = ["partial-cut"]
# resembles = "detached factors weight a tracked loss"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)


def reweighted(logits, y):
    ce = F.cross_entropy(logits, y, reduction="none")
    with torch.no_grad():
        difficulty = (1 - (-ce).exp()).pow(2)
    return (difficulty * ce).sum() / difficulty.sum().clamp_min(1e-6)


for _ in range(8):
    x, y = torch.randn(32, 6), torch.randint(0, 2, (32,))
    opt.zero_grad()
    reweighted(net(x), y).backward()
    opt.step()
# /// correct frozen_feature_extractor_tracked_input
# families = ["partial-cut"]
# resembles = "a frozen network in the path of the gradient"
# ///
import torch
from torch import nn

torch.manual_seed(6)
gen = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU()).requires_grad_(False).eval()
opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
for _ in range(5):
    noisy = torch.rand(2, 1, 10, 10)
    clean = noisy.round()
    out = gen(noisy)
    with torch.no_grad():
        wanted = features(clean)
    loss = (out - clean).abs().mean() + 0.1 * (features(out) - wanted).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct frozen_snapshot_by_deepcopy
# families = ["cause"]
# resembles = "a frozen copy beside the live model"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(14)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
snapshots = []
for epoch in range(3):
    for _ in range(4):
        x = torch.randn(16, 4)
        opt.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        opt.step()
    snapshots.append(copy.deepcopy(model).eval().requires_grad_(False))
with torch.no_grad():
    x = torch.randn(8, 4)
    print(torch.stack([m(x) for m in snapshots]).std(0).mean().item())
# /// correct functional_sgd_written_back
# families = ["uncovered"]
# resembles = "torch.func parameters loaded into the module"
# ///
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(56)
net = nn.Linear(4, 2)
params = {k: v.detach().clone() for k, v in net.named_parameters()}


def loss_fn(p, x, y):
    return nn.functional.cross_entropy(functional_call(net, p, (x.unsqueeze(0),)), y.unsqueeze(0))


per_sample = vmap(grad(loss_fn), in_dims=(None, 0, 0))
for _ in range(6):
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    grads = per_sample(params, x, y)
    params = {k: p - 0.1 * grads[k].clamp(-1, 1).mean(0) for k, p in params.items()}
net.load_state_dict(params)
print(net(torch.randn(2, 4)).sum().item())
# /// correct gan_generator_first_with_inputs
# families = ["other-loss"]
# resembles = "backward(inputs=...) keeps the other network clean"
# ///
import torch
from torch import nn

torch.manual_seed(32)
G, C = nn.Linear(4, 3), nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
g_opt = torch.optim.RMSprop(G.parameters(), lr=1e-3)
c_opt = torch.optim.RMSprop(C.parameters(), lr=1e-3)
for _ in range(8):
    fake = G(torch.randn(16, 4))
    g_opt.zero_grad()
    (-C(fake).mean()).backward(inputs=list(G.parameters()))
    g_opt.step()
    c_opt.zero_grad()
    (C(fake.detach()).mean() - C(torch.randn(16, 3)).mean()).backward()
    c_opt.step()
    with torch.no_grad():
        for p in C.parameters():
            p.clamp_(-0.1, 0.1)
# /// correct gathered_negatives_own_part_restored
# families = ["assignment-cut"]
# resembles = "all_gather with the local tensor put back"
# ///
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

torch.manual_seed(22)
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
a, b = nn.Linear(6, 4), nn.Linear(5, 4)
opt = torch.optim.Adam([*a.parameters(), *b.parameters()], lr=1e-3)


def gather(t):
    parts = [torch.empty_like(t) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, t.detach())
    parts[dist.get_rank()] = t
    return torch.cat(parts)


for _ in range(4):
    za, zb = F.normalize(a(torch.randn(8, 6)), dim=-1), F.normalize(b(torch.randn(8, 5)), dim=-1)
    loss = F.cross_entropy(gather(za) @ gather(zb).t() / 0.1, torch.arange(8))
    opt.zero_grad()
    loss.backward()
    opt.step()
dist.destroy_process_group()
# /// correct gradcheck_of_a_custom_function
# families = ["in-place"]
# resembles = "gradcheck perturbs its inputs and restores them"
# ///
import torch
from torch import nn


class Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (1 + x.abs()).pow(2)


torch.manual_seed(47)
probe = torch.randn(6, dtype=torch.double, requires_grad=True)
assert torch.autograd.gradcheck(Softsign.apply, (probe,))
net = nn.Linear(4, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(5):
    x = torch.randn(8, 4)
    opt.zero_grad()
    (Softsign.apply(net(x)) - x[:, :3]).pow(2).mean().backward()
    opt.step()
# /// correct gradient_reversal_function
# families = ["experiment"]
# resembles = "a Function whose backward is deliberately not the derivative"
# ///
import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.lam = lam
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.lam * grad, None


torch.manual_seed(43)
features, label, domain = nn.Linear(6, 8), nn.Linear(8, 2), nn.Linear(8, 2)
opt = torch.optim.SGD([*features.parameters(), *label.parameters(), *domain.parameters()], lr=0.05)
for step in range(8):
    x, y, d = torch.randn(16, 6), torch.randint(0, 2, (16,)), torch.randint(0, 2, (16,))
    h = features(x).relu()
    loss = nn.functional.cross_entropy(label(h), y)
    loss = loss + nn.functional.cross_entropy(domain(Reverse.apply(h, step / 8)), d)
    opt.zero_grad()
    loss.backward()
    opt.step()
# /// correct gradnorm_weights_reused_graph
# families = ["root"]
# resembles = "task weights updated with gradients of gradients"
# ///
import torch
from torch import nn

torch.manual_seed(26)
shared, heads = nn.Linear(6, 8), nn.ModuleList([nn.Linear(8, 1), nn.Linear(8, 1)])
w = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([*shared.parameters(), *heads.parameters()], lr=1e-3)
w_opt = torch.optim.Adam([w], lr=1e-2)
for _ in range(6):
    x = torch.randn(16, 6)
    h = shared(x).relu()
    losses = torch.stack([(heads[0](h)[:, 0] - x[:, 0]).pow(2).mean(), (heads[1](h)[:, 0] - x.sum(1)).pow(2).mean()])
    norms = torch.stack(
        [torch.autograd.grad(w[i] * losses[i], shared.weight, retain_graph=True, create_graph=True)[0].norm() for i in range(2)]
    )
    balance = (norms - norms.mean().detach()).abs().sum()
    w_opt.zero_grad()
    (w.grad,) = torch.autograd.grad(balance, w, retain_graph=True)
    opt.zero_grad()
    (w.detach() * losses).sum().backward()
    opt.step()
    w_opt.step()
# /// correct hessian_vector_product_helper
# families = ["helper"]
# resembles = "double backward through a helper"
# ///
import torch
from torch import nn

torch.manual_seed(36)
model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
params = list(model.parameters())


def flat(ts):
    return torch.cat([t.reshape(-1) for t in ts])


def hvp(loss, v):
    g = flat(torch.autograd.grad(loss, params, create_graph=True))
    return flat(torch.autograd.grad(g @ v, params)).detach()


x, y = torch.randn(20, 3), torch.randn(20, 1)
v = torch.randn(sum(p.numel() for p in params))
for _ in range(5):
    v = hvp((model(x) - y).pow(2).mean(), v / v.norm())
print(v.norm().item())
# /// correct init_before_optimizer
# families = ["optimizer-time"]
# resembles = "nn.init and the optimizer afterwards"
# ///
import torch
from torch import nn

torch.manual_seed(15)


def init(module):
    if isinstance(module, nn.Linear):
        nn.init.orthogonal_(module.weight, gain=1.4)
        nn.init.zeros_(module.bias)


net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2)).apply(init)
nn.init.orthogonal_(net[2].weight, gain=0.01)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(8):
    opt.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(16, 6)), torch.randint(0, 2, (16,))).backward()
    opt.step()
# /// correct inplace_on_fresh_tensors
# families = ["in-place"]
# resembles = "writes where nothing saved is touched"
# ///
import torch
from torch import nn

torch.manual_seed(46)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 4, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        h = self.act(self.conv(x))
        pooled = h.mean((2, 3))
        out = self.head(pooled)
        out += 0.1
        mask = torch.ones_like(out)
        mask[:, 1].mul_(0.5)
        return out * mask


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    opt.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(4, 2, 6, 6)), torch.randint(0, 2, (4,))).backward()
    opt.step()
# /// correct joint_actor_critic_loss
# families = ["other-loss"]
# resembles = "one optimizer for two losses that share the trunk"
# ///
import torch
from torch import nn
from torch.distributions import Categorical

torch.manual_seed(33)
trunk, pi, v = nn.Linear(4, 16), nn.Linear(16, 3), nn.Linear(16, 1)
opt = torch.optim.Adam([*trunk.parameters(), *pi.parameters(), *v.parameters()], lr=1e-3)
for _ in range(8):
    obs = torch.randn(24, 4)
    h = torch.tanh(trunk(obs))
    dist, value = Categorical(logits=pi(h)), v(h).squeeze(-1)
    action = dist.sample()
    returns = (action == 0).float() + 0.1 * torch.randn(24)
    advantage = returns - value
    loss = -(dist.log_prob(action) * advantage.detach()).mean() + 0.5 * advantage.pow(2).mean()
    loss = loss - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# /// correct late_layer_added_as_group
# families = ["optimizer-time"]
# resembles = "add_param_group for a new layer"
# ///
import torch
from torch import nn

torch.manual_seed(17)
body = nn.Sequential(nn.Linear(6, 10), nn.ReLU())
heads = nn.ModuleList([nn.Linear(10, 2)])
opt = torch.optim.SGD([*body.parameters(), *heads.parameters()], lr=0.05, momentum=0.9)
for task in range(3):
    if task:
        heads.append(nn.Linear(10, 2))
        opt.add_param_group({"params": heads[task].parameters()})
    for _ in range(4):
        x, y = torch.randn(16, 6), torch.randint(0, 2, (16,))
        opt.zero_grad()
        nn.functional.cross_entropy(heads[task](body(x)), y).backward()
        opt.step()
print(len(opt.param_groups))
# /// correct lbfgs_closure_clears
# families = ["uncovered"]
# resembles = "an LBFGS closure as it should be"
# ///
import torch
from torch import nn

torch.manual_seed(50)
x = torch.linspace(-2, 2, 50).unsqueeze(1)
y = x.sin()
net = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.LBFGS(net.parameters(), max_iter=6, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = (net(x) - y).pow(2).mean()
    loss.backward()
    return loss


for _ in range(4):
    print(opt.step(closure).item())
# /// correct loader_with_last_batch_dropped
# families = ["helper"]
# resembles = "batch norm and a loader of 33 samples"
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(38)
loader = DataLoader(TensorDataset(torch.randn(33, 5), torch.randint(0, 2, (33,))), batch_size=8, shuffle=True, drop_last=True)
net = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(2):
    net.train()
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
# /// correct logged_accuracy_beside_loss
# families = ["partial-cut"]
# resembles = "accuracy computed from trained outputs, logged only"
# ///
import torch
from torch import nn

torch.manual_seed(2)
net = nn.Linear(10, 4)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
log = {"loss": 0.0, "accuracy": 0.0, "penalty": 0.0}
for step in range(12):
    x = torch.randn(24, 10)
    y = x[:, :4].argmax(1)
    logits = net(x)
    loss = nn.functional.cross_entropy(logits, y)
    accuracy = (logits.argmax(1) == y).float().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    log["loss"] += loss.item()
    log["accuracy"] += accuracy.item()
    log["penalty"] += net.weight.abs().sum().item()
print({k: v / 12 for k, v in log.items()})
# /// correct loss_helper_returns_tensor_and_log
# families = ["helper"]
# resembles = "floats go to the log only"
# ///
import torch
from torch import nn


def compute_loss(model, x, y):
    out = model(x)
    fit = nn.functional.mse_loss(out, y)
    decay = 1e-3 * sum(p.pow(2).sum() for p in model.parameters())
    return fit + decay, {"fit": fit.item(), "decay": decay.item()}


def main():
    torch.manual_seed(35)
    model = nn.Linear(6, 2)
    opt = torch.optim.Adam(model.parameters())
    for _ in range(6):
        opt.zero_grad()
        loss, log = compute_loss(model, torch.randn(8, 6), torch.randn(8, 2))
        loss.backward()
        opt.step()
    print(log)


main()
# /// correct manual_update_of_extra_parameter
# families = ["optimizer-time"]
# resembles = "a parameter outside the optimizer, updated by hand"
# ///
import torch
from torch import nn

torch.manual_seed(18)
actor = nn.Linear(4, 2)
lagrange = nn.Parameter(torch.zeros(()))
opt = torch.optim.Adam(actor.parameters(), lr=1e-2)
for _ in range(20):
    obs = torch.randn(32, 4)
    probs = actor(obs).softmax(-1)
    reward = (probs[:, 0] * obs[:, 0]).mean()
    cost = probs[:, 0].mean() - 0.3
    opt.zero_grad()
    (-reward + lagrange.detach().exp() * cost).backward()
    opt.step()
    with torch.no_grad():
        lagrange += 0.1 * cost
print(lagrange.item())
# /// correct mean_teacher_in_train_mode_by_design
# families = ["evaluation"]
# resembles = "a teacher with dropout on, as in its paper"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(30)
student = nn.Sequential(nn.Linear(5, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 2))
teacher = copy.deepcopy(student).requires_grad_(False)
opt = torch.optim.Adam(student.parameters(), lr=1e-3)
for step in range(10):
    x, y, u = torch.randn(8, 5), torch.randint(0, 2, (8,)), torch.randn(24, 5)
    with torch.no_grad():
        target = teacher(u).softmax(-1)
    loss = nn.functional.cross_entropy(student(x), y) + (student(u).softmax(-1) - target).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for t, s in zip(teacher.parameters(), student.parameters()):
            t.mul_(0.95).add_(s, alpha=0.05)
# /// correct monte_carlo_dropout_prediction
# families = ["evaluation"]
# resembles = "dropout on at prediction, on purpose"
# ///
import torch
from torch import nn

torch.manual_seed(27)
net = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(32, 3)
    opt.zero_grad()
    (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    opt.step()


@torch.no_grad()
def predict(x, draws=20):
    net.train()
    samples = torch.stack([net(x) for _ in range(draws)])
    return samples.mean(0), samples.std(0)


print([t.mean().item() for t in predict(torch.randn(5, 3))])
# /// correct partial_load_of_a_backbone
# families = ["uncovered"]
# resembles = "strict=False that loads all but the head"
# ///
import torch
from torch import nn

torch.manual_seed(52)


def build(classes):
    return nn.ModuleDict({"body": nn.Linear(6, 8), "head": nn.Linear(8, classes)})


old = build(10)
state = {k: v for k, v in old.state_dict().items() if not k.startswith("head")}
model = build(3)
missing, unexpected = model.load_state_dict(state, strict=False)
assert not unexpected and all(k.startswith("head") for k in missing)
model["body"].requires_grad_(False)
opt = torch.optim.SGD(model["head"].parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(model["head"](model["body"](x).relu()), y).backward()
    opt.step()
# /// correct per_sample_losses_seeded_with_ones
# families = ["root"]
# resembles = "gradient= of ones"
# ///
import torch
from torch import nn

torch.manual_seed(25)
net = nn.Linear(5, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights = torch.tensor([1.0, 3.0])
for _ in range(6):
    x, y = torch.randn(12, 5), torch.randint(0, 2, (12,))
    losses = nn.functional.cross_entropy(net(x), y, reduction="none")
    opt.zero_grad()
    share = weights[y] / weights[y].sum()
    losses.backward(gradient=share)
    opt.step()
print(losses.mean().item())
# /// correct pretraining_phase_ends_with_its_optimizer
# families = ["optimizer-time"]
# resembles = "the decoder is finished when phase two starts"
# ///
import torch
from torch import nn

torch.manual_seed(16)
enc, dec = nn.Linear(9, 4), nn.Linear(4, 9)
first = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
x = torch.randn(64, 9)
for _ in range(8):
    first.zero_grad()
    (dec(enc(x).tanh()) - x).pow(2).mean().backward()
    first.step()

head = nn.Linear(4, 2)
second = torch.optim.SGD([*enc.parameters(), *head.parameters()], lr=0.05)
y = (x[:, 0] > 0).long()
for _ in range(8):
    second.zero_grad()
    nn.functional.cross_entropy(head(enc(x).tanh()), y).backward()
    second.step()
print(y.sum().item())
# /// correct probe_gradient_with_retained_graph
# families = ["cause"]
# resembles = "autograd.grad before backward with retain_graph"
# ///
import torch
from torch import nn

torch.manual_seed(13)
trunk, a, b = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 1)
opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=1e-3)
cosines = []
for _ in range(6):
    x = torch.randn(16, 5)
    h = trunk(x).relu()
    first = nn.functional.cross_entropy(a(h), (x[:, 0] > 0).long())
    second = (b(h).squeeze(-1) - x[:, 1]).pow(2).mean()
    g1 = torch.autograd.grad(first, trunk.weight, retain_graph=True)[0].flatten()
    g2 = torch.autograd.grad(second, trunk.weight, retain_graph=True)[0].flatten()
    cosines.append(torch.cosine_similarity(g1, g2, dim=0).item())
    opt.zero_grad()
    (first + second).backward()
    opt.step()
print(cosines)
# /// correct reinforce_with_baseline_and_sample
# families = ["partial-cut"]
# resembles = "sample() with log_prob"
# ///
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(4)
policy, value = nn.Linear(3, 2), nn.Linear(3, 1)
opt = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-2)
for episode in range(10):
    obs = torch.randn(20, 3)
    mu, log_std = policy(obs).chunk(2, -1)
    dist = Normal(mu, log_std.clamp(-3, 1).exp())
    action = dist.sample()
    reward = -(action - obs[:, :1]).pow(2).squeeze(-1)
    baseline = value(obs).squeeze(-1)
    advantage = (reward - baseline).detach()
    actor = -(dist.log_prob(action).squeeze(-1) * advantage).mean()
    critic = (reward - baseline).pow(2).mean()
    opt.zero_grad()
    (actor + 0.5 * critic - 0.01 * dist.entropy().mean()).backward()
    opt.step()
print(critic.item())
# /// correct replay_buffer_written_through_data
# families = ["assignment-cut"]
# resembles = "copying into a buffer that is not meant to carry a graph"
# ///
import torch
from torch import nn

torch.manual_seed(21)
q, k = nn.Linear(6, 4), nn.Linear(6, 4).requires_grad_(False)
k.load_state_dict(q.state_dict())
queue = torch.randn(32, 4)
opt = torch.optim.SGD(q.parameters(), lr=0.05)
at = 0
for _ in range(8):
    x = torch.randn(8, 6)
    query = nn.functional.normalize(q(x), dim=-1)
    key = nn.functional.normalize(k(x + 0.1 * torch.randn_like(x)), dim=-1)
    logits = torch.cat([(query * key).sum(-1, keepdim=True), query @ queue.clone().t()], 1) / 0.2
    opt.zero_grad()
    nn.functional.cross_entropy(logits, torch.zeros(8, dtype=torch.long)).backward()
    opt.step()
    queue.data[at : at + 8].copy_(key)
    at = (at + 8) % 32
    for slow, fast in zip(k.parameters(), q.parameters()):
        slow.data.mul_(0.99).add_(fast.data, alpha=0.01)
# /// correct saliency_of_leaf_pixels
# families = ["helper"]
# resembles = "the gradient of the leaf behind a normalisation"
# ///
import torch
from torch import nn

torch.manual_seed(37)
cnn = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3)).eval()


def saliency(image):
    pixels = image.clone().requires_grad_()
    normalised = (pixels - 0.5) / 0.25
    score = cnn(normalised.unsqueeze(0)).max()
    score.backward()
    heat = pixels.grad.abs().amax(0)
    cnn.zero_grad(set_to_none=True)
    return heat


maps = [saliency(torch.rand(1, 8, 8)) for _ in range(3)]
print(torch.stack(maps).mean().item())
# /// correct scaler_unscales_before_clipping
# families = ["uncovered"]
# resembles = "AMP order"
# ///
import torch
from torch import nn

torch.manual_seed(59)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
for _ in range(6):
    x = torch.randn(16, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(x)
    loss = (out.float() - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
print(loss.item())
# /// correct second_lora_factor_zero_only
# families = ["cause"]
# resembles = "one zero factor of a product"
# ///
import torch
from torch import nn

torch.manual_seed(8)


class LoRA(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(r, base.in_features) / r)
        self.b = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.a.t() @ self.b.t()


layer = LoRA(nn.Linear(6, 6))
opt = torch.optim.AdamW([layer.a, layer.b], lr=1e-2)
for _ in range(10):
    x = torch.randn(16, 6)
    opt.zero_grad()
    (layer(x) - x.flip(-1)).pow(2).mean().backward()
    opt.step()
# /// correct semi_gradient_td
# families = ["other-loss"]
# resembles = "the bootstrap value of the same network under no_grad"
# ///
import torch
from torch import nn

torch.manual_seed(34)
value = nn.Linear(3, 1)
opt = torch.optim.SGD(value.parameters(), lr=0.01)


def bellman_residual(s, r, s2, gamma=0.9):
    with torch.no_grad():
        fixed = r + gamma * value(s2).squeeze(-1)
    semi = (value(s).squeeze(-1) - fixed).pow(2)
    return semi.mean()


for _ in range(12):
    s = torch.randn(16, 3)
    loss = bellman_residual(s, s[:, 0], s + 0.1)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct shared_cell_applied_repeatedly
# families = ["identity"]
# resembles = "one block in a list several times, as ALBERT does"
# ///
import torch
from torch import nn

torch.manual_seed(42)


class Shared(nn.Module):
    def __init__(self, d=8, depth=4):
        super().__init__()
        self.block = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, d), nn.GELU())
        self.depth = depth
        self.out = nn.Linear(d, 1)

    def forward(self, x):
        for _ in range(self.depth):
            x = x + self.block(x)
        return self.out(x)


net = Shared()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for _ in range(6):
    x = torch.randn(16, 8)
    opt.zero_grad()
    (net(x) - x.norm(dim=1, keepdim=True)).pow(2).mean().backward()
    opt.step()
# /// correct standard_train_validate_test
# families = ["evaluation"]
# resembles = "the textbook loop"
# ///
import torch
from torch import nn

torch.manual_seed(29)
net = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)


def run(batches, train):
    net.train(train)
    total = 0.0
    with torch.set_grad_enabled(train):
        for x, y in batches:
            loss = nn.functional.cross_entropy(net(x), y)
            if train:
                opt.zero_grad(set_to_none=True)
                loss.backward()
                opt.step()
            total += loss.item()
    return total / len(batches)


make = lambda n: [(torch.randn(16, 6), torch.randint(0, 3, (16,))) for _ in range(n)]
train, valid, test = make(6), make(2), make(2)
for epoch in range(3):
    print(epoch, run(train, True), run(valid, False))
print(run(test, False))
# /// correct straight_through_rounding
# families = ["partial-cut"]
# resembles = "a value minus its own detached value"
# ///
import torch
from torch import nn

torch.manual_seed(0)
enc, dec = nn.Linear(6, 3), nn.Linear(3, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)


def quantise(z):
    q = torch.round(z * 8) / 8
    return z + (q - z).detach()


for _ in range(10):
    x = torch.randn(16, 6)
    loss = (dec(quantise(enc(x))) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct sum_of_tasks_walked_once
# families = ["root"]
# resembles = "a running total with one backward"
# ///
import torch
from torch import nn

torch.manual_seed(24)
net = nn.Sequential(nn.Linear(4, 8), nn.ELU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.02)
for _ in range(6):
    tasks = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
    total = torch.zeros(())
    parts = []
    for x, y in tasks:
        loss = nn.functional.smooth_l1_loss(net(x), y)
        parts.append(loss.item())
        total = total + loss
    opt.zero_grad()
    total.backward()
    opt.step()
print(parts)
# /// correct summed_loss_over_micro_batches
# families = ["experiment"]
# resembles = "sums of slices need no division"
# ///
import torch
from torch import nn

torch.manual_seed(45)
net = nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for _ in range(4):
    x, y = torch.randn(40, 6), torch.randint(0, 3, (40,))
    opt.zero_grad()
    for xs, ys in zip(x.split(16), y.split(16)):
        loss = nn.functional.cross_entropy(net(xs), ys, reduction="sum") / len(x)
        loss.backward()
    opt.step()
    print(loss.item())

print(net.weight.norm().item())
# /// correct swa_with_update_bn
# families = ["uncovered"]
# resembles = "averaged weights with their own statistics"
# ///
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn

torch.manual_seed(53)
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
average = AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
data = [torch.randn(16, 4) + 2 for _ in range(4)]
for epoch in range(3):
    for x in data:
        opt.zero_grad()
        (net(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        opt.step()
    average.update_parameters(net)
update_bn(data, average)
average.eval()
with torch.no_grad():
    print(average(data[0]).mean().item())
# /// correct target_network_hard_update
# families = ["identity"]
# resembles = "load_state_dict into a deep copy"
# ///
import copy

import torch
from torch import nn

torch.manual_seed(40)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(policy).eval()
opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
for step in range(20):
    s, a, r, s2 = torch.randn(8, 4), torch.randint(0, 2, (8, 1)), torch.rand(8), torch.randn(8, 4)
    with torch.no_grad():
        y = r + 0.9 * target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(policy(s).gather(1, a).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 5 == 4:
        target.load_state_dict(policy.state_dict())
# /// correct tied_decoder_and_siamese
# families = ["identity"]
# resembles = "shared parameters on purpose"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(39)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 4)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        h = torch.relu(self.enc(x))
        return h, F.linear(h, self.enc.weight.t(), self.bias)


net = Tied()
twin = net
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(6):
    x = torch.randn(16, 8)
    (h1, r1), (h2, _) = net(x), twin(x + 0.1 * torch.randn_like(x))
    opt.zero_grad()
    ((r1 - x).pow(2).mean() + (h1 - h2).pow(2).mean()).backward()
    opt.step()
# /// correct token_weighted_accumulation
# families = ["uncovered"]
# resembles = "accumulation over all tokens of the window"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(48)
lm = nn.Sequential(nn.Embedding(12, 8), nn.Linear(8, 12))
opt = torch.optim.AdamW(lm.parameters(), lr=1e-3)
for _ in range(3):
    window = [torch.randint(0, 12, (2, n)) for n in (4, 9, 6)]
    tokens = sum(ids[:, 1:].numel() for ids in window)
    opt.zero_grad()
    for ids in window:
        logits = lm(ids[:, :-1]).flatten(0, 1)
        (F.cross_entropy(logits, ids[:, 1:].flatten(), reduction="sum") / tokens).backward()
    torch.nn.utils.clip_grad_norm_(lm.parameters(), 1.0)
    opt.step()
# /// correct truncated_bptt_detach_between_chunks
# families = ["uncovered"]
# resembles = "the state is detached between chunks only"
# ///
import torch
from torch import nn

torch.manual_seed(55)
rnn, head = nn.LSTM(3, 10, batch_first=True), nn.Linear(10, 3)
opt = torch.optim.Adam([*rnn.parameters(), *head.parameters()], lr=1e-3)
stream = torch.randn(4, 41, 3)
for epoch in range(2):
    state = None
    for start in range(0, 40, 8):
        x, y = stream[:, start : start + 8], stream[:, start + 1 : start + 9]
        out, state = rnn(x, state)
        loss = (head(out) - y).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*rnn.parameters(), *head.parameters()], 0.5)
        opt.step()
        state = tuple(s.detach() for s in state)
# /// correct two_losses_share_the_trunk
# families = ["root"]
# resembles = "two backward calls over one trunk with retain_graph"
# ///
import torch
from torch import nn

torch.manual_seed(23)
trunk, rec, cls = nn.Linear(8, 6), nn.Linear(6, 8), nn.Linear(6, 3)
opt = torch.optim.Adam([*trunk.parameters(), *rec.parameters(), *cls.parameters()], lr=1e-3)
for _ in range(8):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    h = torch.tanh(trunk(x))
    opt.zero_grad()
    (rec(h) - x).pow(2).mean().backward(retain_graph=True)
    class_loss = nn.functional.cross_entropy(cls(h), y)
    class_loss.backward()
    opt.step()
print(h.abs().mean().item())
# /// correct uda_target_view_without_grad
# families = ["partial-cut"]
# resembles = "one view of two under no_grad"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)
net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 3))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(10):
    x, y, u = torch.randn(16, 10), torch.randint(0, 3, (16,)), torch.randn(48, 10)
    supervised = F.cross_entropy(net(x), y)
    with torch.no_grad():
        guess = net(u).softmax(-1)
        keep = (guess.max(-1).values > 0.35).float()
    strong = net(u + 0.2 * torch.randn_like(u)).log_softmax(-1)
    consistency = (F.kl_div(strong, guess, reduction="none").sum(-1) * keep).mean()
    opt.zero_grad()
    (supervised + consistency).backward()
    opt.step()
print(supervised.item())
# /// correct validate_restores_previous_mode
# families = ["cause"]
# resembles = "eval() that is undone"
# ///
import contextlib

import torch
from torch import nn

torch.manual_seed(10)


@contextlib.contextmanager
def evaluating(model):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was)


net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(12):
    x, y = torch.randn(16, 5), torch.randint(0, 2, (16,))
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()
    if step % 4 == 3:
        with evaluating(net):
            print(step, nn.functional.cross_entropy(net(x), y).item())
# /// correct warmup_scheduler_per_batch
# families = ["uncovered"]
# resembles = "a scheduler meant for batches"
# ///
import torch
from torch import nn

torch.manual_seed(49)
net = nn.Linear(5, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
total, warm = 24, 6
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) / warm, (total - s) / (total - warm)))
for epoch in range(3):
    for _ in range(8):
        opt.zero_grad()
        nn.functional.cross_entropy(net(torch.randn(8, 5)), torch.randint(0, 2, (8,))).backward()
        opt.step()
        sched.step()
    print(epoch, sched.get_last_lr())
# /// correct weights_generated_and_used_directly
# families = ["assignment-cut"]
# resembles = "a hypernetwork done right"
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(20)
hyper = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 4 * 2 + 2))
opt = torch.optim.Adam(hyper.parameters(), lr=1e-2)
for _ in range(10):
    task = torch.randn(3)
    generated = hyper(task)
    weight, bias = generated[:8].view(2, 4), generated[8:]
    x = torch.randn(32, 4)
    y = (x @ task.new_ones(4) * task[0] > 0).long()
    loss = F.cross_entropy(F.linear(x, weight, bias), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct zero_initialised_output_layer
# families = ["cause"]
# resembles = "residual branches start at zero"
# ///
import torch
from torch import nn

torch.manual_seed(9)


class Residual(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.down.bias)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


net = nn.Sequential(nn.Linear(4, 8), Residual(8), Residual(8), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(15):
    x = torch.randn(32, 4)
    opt.zero_grad()
    (net(x) - x.prod(1, keepdim=True)).pow(2).mean().backward()
    opt.step()
