# /// correct bf16_autocast
# ///
"""Mixed precision on the CPU: bfloat16 autocast, float32 weights, no scaler needed."""
import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(32, 64), nn.LayerNorm(64), nn.GELU(), nn.Linear(64, 6))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(1)
mlp = MLP()
opt = torch.optim.AdamW(mlp.parameters(), lr=3e-3)
x = torch.randn(96, 32)
y = x[:, :6].argmax(1)
for step in range(20):
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = mlp(x)
        loss = F.cross_entropy(logits, y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(mlp.parameters(), 1.0)
    opt.step()
mlp.eval()
with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
    acc = (mlp(x).argmax(1) == y).float().mean().item()
print(loss.item(), acc)
# /// correct custom_function_done_right
# ///
"""A custom autograd.Function with a correct backward, checked by gradcheck."""
import torch
from torch import nn
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable


class Huberish(Function):
    @staticmethod
    def forward(ctx, x, delta):
        small = x.abs() <= delta
        ctx.save_for_backward(x, small)
        ctx.delta = delta
        return torch.where(small, 0.5 * x * x, delta * (x.abs() - 0.5 * delta))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        x, small = ctx.saved_tensors
        return grad_out * torch.where(small, x, ctx.delta * x.sign()), None


class TopK(Function):
    @staticmethod
    def forward(ctx, x, k):
        values, index = x.topk(k, dim=1)
        ctx.save_for_backward(index)
        ctx.width = x.size(1)
        ctx.mark_non_differentiable(index)
        return values, index

    @staticmethod
    def backward(ctx, grad_values, _grad_index):
        (index,) = ctx.saved_tensors
        out = grad_values.new_zeros(grad_values.size(0), ctx.width)
        return out.scatter_(1, index, grad_values), None


torch.manual_seed(3)
probe = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
assert gradcheck(lambda t: Huberish.apply(t, 0.7), (probe,))
lin = nn.Linear(6, 6)
opt = torch.optim.SGD(lin.parameters(), lr=0.05)
for _ in range(15):
    x = torch.randn(32, 6)
    values, _ = TopK.apply(lin(x) - 2 * x, 3)
    loss = Huberish.apply(values, 1.0).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct denoising_autoencoder
# ///
"""Denoising autoencoder with sparse code and a plain training function."""
import torch
from torch import nn


class AE(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.enc = nn.Linear(d, k)
        self.dec = nn.Linear(k, d)

    def forward(self, x):
        code = torch.relu(self.enc(x))
        return self.dec(code), code


def fit(model, data, epochs, lr=1e-2, l1=1e-3):
    optimiser = torch.optim.RMSprop(model.parameters(), lr=lr)
    curve = []
    for epoch in range(epochs):
        total = 0.0
        for batch in data.split(25):
            dirty = batch + 0.2 * torch.randn_like(batch)
            rec, code = model(dirty)
            loss = (rec - batch).square().mean() + l1 * code.abs().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += float(loss.detach())
        curve.append(total)
    return curve


def main():
    torch.manual_seed(10)
    basis = torch.randn(4, 20)
    data = torch.rand(100, 4) @ basis
    model = AE(20, 10)
    curve = fit(model, data, epochs=6)
    model.eval()
    with torch.no_grad():
        rec, _ = model(data)
    print(curve[0], curve[-1], (rec - data).abs().mean().item())


if __name__ == "__main__":
    main()
# /// correct double_dqn_targets
# ///
"""Double DQN update with a frozen target copy and soft updates."""
import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)
GAMMA, TAU = 0.98, 0.05
online = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3))
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad_(False)
opt = torch.optim.Adam(online.parameters(), lr=1e-3)


def transitions(n):
    s = torch.randn(n, 5)
    a = torch.randint(0, 3, (n, 1))
    r = (a.squeeze(1) == s[:, :3].argmax(1)).float()
    return s, a, r, torch.randn(n, 5), (torch.rand(n) < 0.1).float()


for step in range(30):
    s, a, r, s2, done = transitions(64)
    q = online(s).gather(1, a).squeeze(1)
    with torch.no_grad():
        best = online(s2).argmax(1, keepdim=True)
        goal = r + GAMMA * (1 - done) * target(s2).gather(1, best).squeeze(1)
    loss = F.smooth_l1_loss(q, goal)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(online.parameters(), 1.0)
    opt.step()
    with torch.no_grad():
        for t, o in zip(target.parameters(), online.parameters()):
            t.lerp_(o, TAU)
print(loss.item())
# /// correct gnn_message_passing
# ///
"""Message passing with index_add, graph-level regression."""
import torch
import torch.nn.functional as F
from torch import nn


class MessageLayer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.msg = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU())
        self.upd = nn.GRUCell(d, d)

    def forward(self, h, src, dst):
        m = self.msg(torch.cat([h[src], h[dst]], dim=1))
        agg = torch.zeros_like(h).index_add_(0, dst, m)
        degree = torch.zeros(h.size(0)).index_add_(0, dst, torch.ones(dst.size(0))).clamp(min=1)
        return self.upd(agg / degree.unsqueeze(1), h)


class Net(nn.Module):
    def __init__(self, d_in=3, d=16):
        super().__init__()
        self.inp = nn.Linear(d_in, d)
        self.layers = nn.ModuleList(MessageLayer(d) for _ in range(2))
        self.out = nn.Linear(d, 1)

    def forward(self, x, src, dst, graph, n_graphs):
        h = torch.tanh(self.inp(x))
        for layer in self.layers:
            h = layer(h, src, dst)
        pooled = torch.zeros(n_graphs, h.size(1)).index_add_(0, graph, h)
        return self.out(pooled).squeeze(-1)


def batch(n_graphs=8):
    xs, src, dst, gid, off = [], [], [], [], 0
    for g in range(n_graphs):
        n = int(torch.randint(4, 8, (1,)))
        xs.append(torch.randn(n, 3))
        e = torch.randint(0, n, (2, 2 * n)) + off
        src.append(e[0]), dst.append(e[1])
        gid.append(torch.full((n,), g))
        off += n
    target = torch.stack([x[:, 0].sum() for x in xs])
    return torch.cat(xs), torch.cat(src), torch.cat(dst), torch.cat(gid), target


torch.manual_seed(12)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(20):
    x, src, dst, gid, target = batch()
    loss = F.mse_loss(net(x, src, dst, gid, target.numel()), target)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct grad_reversal_and_hooks
# ///
"""Domain-adversarial training: a gradient-reversal function and a clamping hook, both intended."""
import torch
import torch.nn.functional as F
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.weight * grad, None


torch.manual_seed(14)
feat = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
label, domain = nn.Linear(24, 2), nn.Linear(24, 2)
modules = nn.ModuleList([feat, label, domain])
opt = torch.optim.SGD(modules.parameters(), lr=0.05)
handles = [p.register_hook(lambda g: g.clamp(-1.0, 1.0)) for p in feat.parameters()]
for step in range(20):
    src, tgt = torch.randn(32, 6), torch.randn(32, 6) + 1.0
    y = (src[:, 0] > 0).long()
    fs, ft = feat(src), feat(tgt)
    task = F.cross_entropy(label(fs), y)
    both = Reverse.apply(torch.cat([fs, ft]), min(1.0, step / 10))
    which = torch.cat([torch.zeros(32), torch.ones(32)]).long()
    loss = task + F.cross_entropy(domain(both), which)
    opt.zero_grad()
    loss.backward()
    opt.step()
for h in handles:
    h.remove()
print(task.item())
# /// correct knowledge_distillation
# ///
"""Distillation from a fixed teacher: temperature, hard and soft targets."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 4))
t_opt = torch.optim.Adam(teacher.parameters(), lr=1e-2)
x, TEMP = torch.randn(100, 10), 3.0
y = x[:, :4].argmax(1)
for _ in range(20):
    t_opt.zero_grad()
    F.cross_entropy(teacher(x), y).backward()
    t_opt.step()
teacher.eval().requires_grad_(False)

student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 4))
s_opt = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(30):
    soft = F.softmax(teacher(x) / TEMP, dim=-1)
    logits = student(x)
    kd = F.kl_div(F.log_softmax(logits / TEMP, dim=-1), soft, reduction="batchmean") * TEMP**2
    loss = 0.7 * kd + 0.3 * F.cross_entropy(logits, y)
    s_opt.zero_grad()
    loss.backward()
    s_opt.step()
print(loss.item(), (student(x).argmax(1) == y).float().mean().item())
# /// correct lbfgs_closure
# ///
"""Logistic regression with L-BFGS and a closure."""
import torch
import torch.nn.functional as F

torch.manual_seed(4)
X = torch.randn(120, 6, dtype=torch.float64)
true_w = torch.randn(6, dtype=torch.float64)
y = (X @ true_w + 0.3 * torch.randn(120, dtype=torch.float64) > 0).double()
w = torch.zeros(6, dtype=torch.float64, requires_grad=True)
b = torch.zeros((), dtype=torch.float64, requires_grad=True)
solver = torch.optim.LBFGS([w, b], lr=1.0, max_iter=20, line_search_fn="strong_wolfe")
calls = 0


def closure():
    global calls
    calls += 1
    solver.zero_grad()
    loss = F.binary_cross_entropy_with_logits(X @ w + b, y) + 1e-3 * w.square().sum()
    loss.backward()
    return loss


before = closure().item()
solver.step(closure)
with torch.no_grad():
    acc = ((X @ w + b > 0) == y.bool()).double().mean().item()
print(before, acc, calls)
# /// correct multitask_retain_graph
# ///
"""Gradient-conflict projection (PCGrad-like): several gradients of one graph, retain_graph on purpose."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(13)
shared = nn.Sequential(nn.Linear(8, 24), nn.ReLU())
head_a, head_b = nn.Linear(24, 1), nn.Linear(24, 3)
shared_params = list(shared.parameters())
opt = torch.optim.Adam([*shared_params, *head_a.parameters(), *head_b.parameters()], lr=3e-3)


def flat(gs):
    return torch.cat([g.reshape(-1) for g in gs])


for step in range(20):
    x = torch.randn(48, 8)
    h = shared(x)
    loss_a = F.mse_loss(head_a(h).squeeze(-1), x.sum(1))
    loss_b = F.cross_entropy(head_b(h), x[:, :3].argmax(1))
    ga = flat(torch.autograd.grad(loss_a, shared_params, retain_graph=True))
    gb = flat(torch.autograd.grad(loss_b, shared_params, retain_graph=True))
    dot = ga @ gb
    if dot < 0:
        ga, gb = ga - dot / gb.pow(2).sum() * gb, gb - dot / ga.pow(2).sum() * ga
    opt.zero_grad()
    (loss_a + loss_b).backward()
    merged, i = ga + gb, 0
    for p in shared_params:
        p.grad = merged[i:i + p.numel()].view_as(p).clone()
        i += p.numel()
    opt.step()
print(loss_a.item(), loss_b.item())
# /// correct sam_optimizer
# ///
"""Sharpness-aware minimisation: two forward/backward passes per step."""
import torch
import torch.nn.functional as F
from torch import nn


class SAM:
    def __init__(self, params, base, rho=0.05):
        self.params, self.base, self.rho, self.eps = list(params), base, rho, {}

    @torch.no_grad()
    def ascend(self):
        norm = torch.stack([p.grad.norm() for p in self.params]).norm() + 1e-12
        for p in self.params:
            self.eps[p] = p.grad * (self.rho / norm)
            p.add_(self.eps[p])
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self):
        for p in self.params:
            p.sub_(self.eps.pop(p))
        self.base.step()
        self.base.zero_grad()


torch.manual_seed(6)
net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
sam = SAM(net.parameters(), torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9))
x = torch.randn(90, 8)
y = x[:, :3].argmax(1)
for step in range(20):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    sam.ascend()
    F.cross_entropy(net(x), y).backward()
    sam.descend()
print(loss.item())
# /// correct simsiam_stop_gradient
# ///
"""SimSiam: the stop-gradient branch is intended."""
import torch
import torch.nn.functional as F
from torch import nn


class SimSiam(nn.Module):
    def __init__(self, d=16, z=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(d, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, z))
        self.predictor = nn.Sequential(nn.Linear(z, 8), nn.ReLU(), nn.Linear(8, z))

    def forward(self, a, b):
        za, zb = self.encoder(a), self.encoder(b)
        return self.predictor(za), self.predictor(zb), za.detach(), zb.detach()


def neg_cos(p, z):
    return -F.cosine_similarity(p, z, dim=1).mean()


torch.manual_seed(7)
model = SimSiam()
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for step in range(20):
    x = torch.randn(32, 16)
    pa, pb, za, zb = model(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    loss = 0.5 * (neg_cos(pa, zb) + neg_cos(pb, za))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
# /// correct transformer_lm
# ///
"""Decoder-only language model with warm-up + cosine schedule and two decay groups."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, h, batch_first=True, dropout=0.1)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        y = self.ln1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, vocab=16, ctx=12, d=32):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.pos = nn.Parameter(torch.zeros(ctx, d))
        self.blocks = nn.ModuleList([Block(d, 4), Block(d, 4)])
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, vocab, bias=False)
        self.register_buffer("mask", torch.triu(torch.ones(ctx, ctx, dtype=torch.bool), 1))
        nn.init.normal_(self.pos, std=0.02)

    def forward(self, ids):
        n = ids.size(1)
        x = self.tok(ids) + self.pos[:n]
        for b in self.blocks:
            x = b(x, self.mask[:n, :n])
        return self.head(self.norm(x))


torch.manual_seed(11)
gpt = GPT()
decay = [p for p in gpt.parameters() if p.ndim >= 2]
rest = [p for p in gpt.parameters() if p.ndim < 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=3e-3)
STEPS, WARM = 25, 5
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: (s + 1) / WARM if s < WARM else 0.5 * (1 + math.cos(math.pi * (s - WARM) / (STEPS - WARM)))
)
for step in range(STEPS):
    first = torch.randint(0, 16, (24, 1))
    stride = torch.randint(1, 4, (24, 1))
    seq = (first + stride * torch.arange(13)) % 16
    loss = F.cross_entropy(gpt(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
    opt.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
    opt.step()
    sched.step()
print(loss.item())
# /// correct vq_straight_through
# ///
"""Vector-quantised autoencoder with the straight-through estimator."""
import torch
import torch.nn.functional as F
from torch import nn


class VQ(nn.Module):
    def __init__(self, n_codes=8, dim=4, beta=0.25):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(n_codes, dim))
        self.beta = beta

    def forward(self, z):
        index = torch.cdist(z.detach(), self.codes.detach()).argmin(dim=1)
        q = self.codes[index]
        loss = F.mse_loss(q, z.detach()) + self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss, index


torch.manual_seed(8)
enc = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 4))
dec = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 12))
vq = VQ()
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *vq.parameters()], lr=3e-3)
centres = torch.randn(8, 12) * 2
for step in range(30):
    x = centres[torch.randint(0, 8, (64,))] + 0.1 * torch.randn(64, 12)
    q, vq_loss, index = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + vq_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), index.unique().numel())
# /// correct weight_tying
# ///
"""Recurrent language model whose output layer shares the embedding matrix."""
import torch
import torch.nn.functional as F
from torch import nn


class TiedLM(nn.Module):
    def __init__(self, vocab=20, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.Linear(dim, vocab)
        self.decoder.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, ids):
        out, _ = self.rnn(self.embed(ids))
        return self.decoder(out)


torch.manual_seed(2)
lm = TiedLM()
opt = torch.optim.Adam(lm.parameters(), lr=5e-3)
for step in range(25):
    start = torch.randint(0, 20, (16, 1))
    seq = (start + torch.arange(9)) % 20
    loss = F.cross_entropy(lm(seq[:, :-1]).flatten(0, 1), seq[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item(), lm.decoder.weight is lm.embed.weight)
# /// correct wgan_gradient_penalty
# ///
"""WGAN-GP: several critic steps per generator step, double backward through the critic."""
import torch
from torch import nn


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mix)
    (g,) = torch.autograd.grad(score, mix, grad_outputs=torch.ones_like(score), create_graph=True)
    return ((g.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()


torch.manual_seed(5)
gen = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 2))
critic = nn.Sequential(nn.Linear(2, 32), nn.Softplus(), nn.Linear(32, 1, bias=False))
g_opt = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.0, 0.9))
c_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
for it in range(8):
    for p in critic.parameters():
        p.requires_grad_(True)
    for _ in range(3):
        real = torch.randn(48, 2) + torch.tensor([2.0, -1.0])
        with torch.no_grad():
            fake = gen(torch.randn(48, 3))
        c_loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(critic, real, fake)
        c_opt.zero_grad()
        c_loss.backward()
        c_opt.step()
    for p in critic.parameters():
        p.requires_grad_(False)
    g_loss = -critic(gen(torch.randn(48, 3))).mean()
    g_opt.zero_grad()
    g_loss.backward()
    g_opt.step()
print(c_loss.item(), g_loss.item())
