"""BP601 to BP607 and BP810, of one term of a loss while its other terms train."""

_GAN = """
import torch
from torch import nn
import torch.nn.functional as F

gen = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
critic = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
gen_opt = torch.optim.Adam(gen.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)
for real in torch.randn(4, 10, 6):
    fake = gen(torch.randn(10, 4))
    critic_loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real)).mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    {term}
    gen_opt.zero_grad()
    gen_loss.backward()
    gen_opt.step()
"""


def _gan(*lines: str) -> str:
    return _GAN.format(term="\n    ".join(lines))


_SUPERVISED = """
import math
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
running, past = 0.0, None
for x in torch.randn(4, 16, 5):
    y = x[:, :3].argmax(1)
    logits = net(x)
    ce = F.cross_entropy(logits, y)
    {term}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def _supervised(*lines: str) -> str:
    return _SUPERVISED.format(term="\n    ".join(lines))


_POLICY = """
import torch
from torch import nn
from torch.distributions import Categorical, Normal

torch.manual_seed(0)
body, pi, v = nn.Linear(6, 16), nn.Linear(16, 3), nn.Linear(16, 1)
opt = torch.optim.Adam([*body.parameters(), *pi.parameters(), *v.parameters()], lr=1e-3)
for obs in torch.randn(4, 20, 6):
    h = body(obs).tanh()
    dist, value = Categorical(logits=pi(h)), v(h).squeeze(-1)
    action, returns = dist.sample(), torch.randn(20)
    {term}
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def _policy(*lines: str) -> str:
    return _POLICY.format(term="\n    ".join(lines))


_FAULTY = {
    "a generator's feature term made of a detached fake": _gan(
        "adversarial = F.softplus(-critic(fake)).mean()",
        "shown = fake.detach()  # <- BP601",
        "matching = (shown.mean(0) - real.mean(0)).square().sum()",
        "gen_loss = adversarial + 10 * matching",
    ),
    "a generator's own copy of its sample goes to the critic": _gan(
        "pixel = (fake - real).abs().mean()",
        "score = critic(fake.detach())  # <- BP601",
        "gen_loss = F.softplus(-score).mean() + 5 * pixel",
    ),
    "a consistency term under no_grad in a method": """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    @torch.no_grad()  # <- BP602
    def consistency(self, x):
        first = self.net(x).softmax(-1)
        second = self.net(x + 0.1 * torch.randn_like(x)).softmax(-1)
        return (first - second).square().mean()

    def step(self, x, y):
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss = loss + 0.5 * self.consistency(x)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

trainer = Trainer()
for _ in range(4):
    trainer.step(torch.randn(8, 5), torch.randint(0, 2, (8,)))
""",
    "an orthogonality penalty as a number": _supervised(
        "gram = logits.t() @ logits",
        "excess = (gram - torch.eye(3)).square().sum().item()  # <- BP603",
        "loss = ce + 0.01 * excess",
    ),
    "a calibration gap by numpy": _supervised(
        "confidence = logits.softmax(1).max(1).values.detach().numpy()  # <- BP604",
        "gap = float(np.abs(confidence - 0.8).mean())",
        "loss = ce + torch.tensor(gap)",
    ),
    "a list of terms made a tensor anew": _supervised(
        "parts = [logits[:, at].square().mean() for at in range(3)]",
        "spread = torch.tensor(parts).std()  # <- BP605",
        "loss = ce + spread",
    ),
    "hard decisions counted": _supervised(
        "wrong = (logits.argmax(1) != y).float().mean()  # <- BP606",
        "losses = {'ce': ce, 'wrong': wrong}",
        "loss = sum(losses.values())",
    ),
    "thresholded outputs in a list of losses": _supervised(
        "losses = [ce]",
        "hard = (logits.sigmoid() > 0.5).float()  # <- BP606",
        "losses.append((hard.sum(1) - 1).square().mean())",
        "loss = torch.stack(losses).sum()",
    ),
    "an entropy of a detached distribution": _policy(
        "advantage = returns - value.detach()",
        "logits = dist.logits.detach()  # <- BP601",
        "entropy = -(logits.exp() * logits).sum(-1).mean()",
        "policy = -(dist.log_prob(action) * advantage).mean()",
        "loss = policy + 0.5 * (returns - value).square().mean() - 0.01 * entropy",
    ),
    "a KL to the old policy under no_grad": _policy(
        "policy = -(dist.log_prob(action) * (returns - value.detach())).mean()",
        "with torch.no_grad():  # <- BP602",
        "    now = Categorical(logits=pi(body(obs).tanh()))",
        "    shift = (now.probs * now.logits).sum(-1).mean()",
        "loss = policy + (returns - value).square().mean() + 0.1 * shift",
    ),
    "a VAE that draws with sample": """
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def forward(self, x):
        mean, raw = self.enc(x).chunk(2, -1)
        q = Normal(mean, raw.exp())
        return self.dec(q.sample()), q  # <- BP607

vae, prior = Vae(), Normal(0.0, 1.0)
opt = torch.optim.Adam(vae.parameters(), lr=1e-2)
for x in torch.rand(3, 10, 6):
    shown, q = vae(x)
    loss = (shown - x).pow(2).mean() + kl_divergence(q, prior).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an actor that draws with sample, beside its entropy": """
import torch
from torch import nn
from torch.distributions import Normal

actor, q = nn.Linear(3, 2), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q.parameters(), lr=1e-3)

def policy(obs):
    mean, raw = actor(obs).chunk(2, -1)
    dist = Normal(mean, raw.clamp(-3, 1).exp())
    action = dist.sample()  # <- BP607
    return action, dist.log_prob(action)

for obs in torch.randn(4, 16, 3):
    with torch.no_grad():
        goal = torch.randn(16, 1)
    q_loss = (q(torch.cat([obs, torch.randn(16, 1)], -1)) - goal).square().mean()
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    action, log_prob = policy(obs)
    value = q(torch.cat([obs, action], -1))
    actor_loss = (0.2 * log_prob - value).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
    "a boundary term of a PINN that takes numbers": """
import torch
from torch import nn

field = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(field.parameters(), lr=1e-2)

def boundary():
    left = field(torch.zeros(1, 1)).item()  # <- BP603
    right = field(torch.ones(1, 1)).item()
    return left ** 2 + (right - 1.0) ** 2

for _ in range(4):
    x = torch.rand(20, 1, requires_grad=True)
    u = field(x)
    (du,) = torch.autograd.grad(u.sum(), x, create_graph=True)
    loss = (du - u).square().mean() + 10 * boundary()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "an alignment term of two towers through a memory": """
import torch
from torch import nn
import torch.nn.functional as F

image, text = nn.Linear(6, 4), nn.Linear(5, 4)
opt = torch.optim.SGD([*image.parameters(), *text.parameters()], lr=0.1)

class Memory:
    def __init__(self):
        self.kept = {}

    def store(self, key, value):
        self.kept[key] = value.data  # <- BP601

memory = Memory()
for _ in range(4):
    a, b = F.normalize(image(torch.randn(8, 6)), dim=1), F.normalize(text(torch.randn(8, 5)), dim=1)
    contrast = F.cross_entropy(a @ b.t() / 0.1, torch.arange(8))
    memory.store("a", a)
    memory.store("b", b)
    align = (memory.kept["a"] - memory.kept["b"]).square().sum(1).mean()
    loss = contrast + align
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "hidden states matched to a teacher's, both without gradients": """
import torch
from torch import nn
import torch.nn.functional as F

teacher = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)).requires_grad_(False)
student = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.Adam(student.parameters(), lr=1e-3)

def hidden_loss(x):
    with torch.no_grad():  # <- BP602
        wanted = teacher[0](x)
        given = student[0](x)
    return F.mse_loss(given, wanted)

def soft_loss(x):
    with torch.no_grad():
        wanted = teacher(x).softmax(1)
    return F.kl_div(student(x).log_softmax(1), wanted, reduction="batchmean")

for x in torch.randn(4, 8, 5):
    total = torch.zeros(())
    total = total + soft_loss(x)
    total = total + 0.1 * hidden_loss(x)
    opt.zero_grad()
    total.backward()
    opt.step()
""",
    "a rebuilt length penalty in a helper of a list": """
import torch
from torch import nn

gru, out = nn.GRU(3, 6, batch_first=True), nn.Linear(6, 2)
opt = torch.optim.Adam([*gru.parameters(), *out.parameters()], lr=1e-2)

def roughness(track):
    pieces = []
    for one in track:
        pieces.append((one[1:] - one[:-1]).square().sum())
    return torch.as_tensor([float(one) for one in pieces]).mean()  # <- BP603

for x in torch.randn(4, 5, 7, 3):
    track = out(gru(x)[0])
    fit = (track - x[..., :2]).square().mean()
    loss = fit + 0.1 * roughness(track)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a penalty of the weights by numpy": _supervised(
        "size = np.linalg.norm(net[0].weight.detach().numpy())  # <- BP604",
        "loss = ce + 0.1 * float(size)",
    ),
    "how far inner steps went, without its history": """
import torch
from torch import nn
from torch.func import functional_call

net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(4):
    total = torch.zeros(())
    for _ in range(2):
        x = torch.randn(6, 2)
        inner = (net(x) - x.sum(1, keepdim=True)).square().mean()
        grads = torch.autograd.grad(inner, list(net.parameters()), create_graph=True)
        fast = {name: p - 0.1 * g for (name, p), g in zip(net.named_parameters(), grads)}
        total = total + functional_call(net, fast, (x,)).square().mean()
        drift = sum((fast[name] - p).square().sum() for name, p in net.named_parameters())
        total = total + 0.5 * drift.detach()  # <- BP810
    opt.zero_grad()
    total.backward()
    opt.step()
""",
}

_CORRECT = {
    "x minus its own value": _supervised("extra = logits.square().mean()", "loss = ce + extra - extra.detach()"),
    "a straight-through loss": _supervised(
        "soft = (1 - logits.softmax(1).gather(1, y[:, None])).mean()",
        "hard = (logits.argmax(1) != y).float().mean()",
        "loss = soft + (hard - soft).detach()",
    ),
    "flooding": _supervised("loss = (ce - 0.3).abs() + 0.3"),
    "a running mean of the loss taken away": _supervised(
        "running = 0.9 * running + 0.1 * ce.item()", "loss = ce - running"
    ),
    "weights of samples under no_grad": _supervised(
        "each = F.cross_entropy(logits, y, reduction='none')",
        "with torch.no_grad():",
        "    weight = (1 - (-each).exp()).square()",
        "loss = (weight * each).mean() + weight.mean() * ce",
    ),
    "numbers that scale": _supervised("size = logits.detach().abs().mean().item()", "loss = ce / (1 + size) + ce"),
    "what is shown is summed apart": _supervised(
        "loss = ce + 0.1 * logits.square().mean()",
        "wrong = (logits.argmax(1) != y).float().mean()",
        "shown = loss.detach() + wrong",
    ),
    "a target of another view": _supervised(
        "with torch.no_grad():",
        "    target = net(x + 0.1).softmax(1)",
        "loss = ce + (net(x - 0.1).softmax(1) - target).square().mean()",
    ),
    "a generator's loss beside the critic's value of real data": _gan(
        "with torch.no_grad():",
        "    level = critic(real).mean()",
        "gen_loss = (level - critic(fake).mean()) + 0.1 * (fake - real).abs().mean()",
    ),
    "a generator's loss shown with the critic's": _gan(
        "adversarial = F.softplus(-critic(fake)).mean()", "gen_loss = adversarial + 0.0 * critic_loss.detach()"
    ),
    "an advantage and a bonus from counts": _policy(
        "bonus = (action == 0).float()",
        "advantage = returns + bonus - value.detach()",
        "policy = -(dist.log_prob(action) * advantage).mean()",
        "loss = policy + (returns - value).square().mean() - 0.01 * dist.entropy().mean()",
    ),
    "a policy that is told its value's level": _policy(
        "policy = -(dist.log_prob(action) * (returns - value.detach())).mean()",
        "loss = policy - value.detach().mean() + (returns - value).square().mean()",
    ),
    "PPO with a KL that only stops": _policy(
        "with torch.no_grad():",
        "    old = dist.log_prob(action)",
        "ratio = (dist.log_prob(action) - old).exp()",
        "kl = (old - dist.log_prob(action)).mean().item()",
        "gain = torch.min(ratio * returns, ratio.clamp(0.8, 1.2) * returns).mean()",
        "coefficient = 0.5 if kl > 0.1 else 0.2",
        "loss = coefficient * (returns - value).square().mean() - gain",
    ),
    "a joint actor and critic by the score of the sample": """
import torch
from torch import nn
from torch.distributions import Normal

actor, q = nn.Linear(3, 2), nn.Linear(4, 1)
opt = torch.optim.Adam([*actor.parameters(), *q.parameters()], lr=1e-3)
for obs in torch.randn(4, 16, 3):
    mean, raw = actor(obs).chunk(2, -1)
    dist = Normal(mean, raw.clamp(-3, 1).exp())
    action = dist.sample()
    returns = -action.square().sum(-1)
    value = q(torch.cat([obs, action], -1)).squeeze(-1)
    policy = -(dist.log_prob(action).squeeze(-1) * value.detach()).mean()
    loss = policy + (returns - value).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a critic that is taught by a sample of the actor": """
import torch
from torch import nn
from torch.distributions import Normal

actor, q = nn.Linear(3, 2), nn.Linear(4, 1)
actor_opt = torch.optim.Adam(actor.parameters(), lr=1e-3)
q_opt = torch.optim.Adam(q.parameters(), lr=1e-3)
for obs in torch.randn(4, 16, 3):
    mean, raw = actor(obs).chunk(2, -1)
    dist = Normal(mean, raw.clamp(-3, 1).exp())
    taken = dist.sample()
    q_loss = (q(torch.cat([obs, taken], -1)) + taken.square()).square().mean() + 1e-3 * q.weight.square().sum()
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    action = dist.rsample()
    actor_loss = (0.2 * dist.log_prob(action) - q(torch.cat([obs, action], -1))).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
    "a quantised code with its own loss": """
import torch
from torch import nn

enc, dec, book = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(8, 4)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters(), *book.parameters()], lr=1e-3)
for x in torch.randn(4, 12, 6):
    z = enc(x)
    codes = book(torch.cdist(z, book.weight).argmin(1))
    passed = z + (codes - z).detach()
    loss = (dec(passed) - x).square().mean() + (codes - z.detach()).square().mean()
    loss = loss + 0.25 * (z - codes.detach()).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a probe on features that are meant to stay": """
import torch
from torch import nn
import torch.nn.functional as F

net, head, probe = nn.Linear(5, 8), nn.Linear(8, 2), nn.Linear(8, 3)
opt = torch.optim.SGD([*net.parameters(), *head.parameters(), *probe.parameters()], lr=0.1)
for x in torch.randn(4, 8, 5):
    h = net(x).relu()
    loss = F.cross_entropy(head(h), (x[:, 0] > 0).long()) + F.cross_entropy(probe(h.detach()), x[:, :3].argmax(1))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a Lagrange multiplier and its dual": """
import torch
from torch import nn

net, raw = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
dual = torch.optim.SGD([raw], lr=1e-2, maximize=True)
for x in torch.randn(4, 8, 4):
    out = net(x)
    cost, limit = (out - x[:, :1]).square().mean(), out.abs().mean() - 0.5
    loss = cost + raw.exp().detach() * limit
    opt.zero_grad()
    loss.backward()
    opt.step()
    dual_loss = raw.exp() * limit.detach()
    dual.zero_grad()
    dual_loss.backward()
    dual.step()
""",
    "two losses stepped apart and shown together": """
import torch
from torch import nn

left, right = nn.Linear(4, 2), nn.Linear(2, 4)
left_opt = torch.optim.SGD(left.parameters(), lr=0.1)
right_opt = torch.optim.SGD(right.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    code = left(x)
    own = code.square().mean()
    back = (right(code.detach()) - x).square().mean()
    right_opt.zero_grad()
    back.backward()
    right_opt.step()
    total = own + back.detach()
    left_opt.zero_grad()
    total.backward()
    left_opt.step()
""",
    "a discriminative phase whose encoder is done": """
import torch
from torch import nn

enc, head = nn.Linear(4, 3), nn.Linear(3, 1)
first = torch.optim.SGD(enc.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    first.zero_grad()
    (enc(x) - x[:, :3]).square().mean().backward()
    first.step()
second = torch.optim.SGD(head.parameters(), lr=0.1)
for x in torch.randn(3, 8, 4):
    with torch.no_grad():
        code = enc(x)
        prior = code.square().mean()
    loss = (head(code) - x[:, :1]).square().mean() + prior
    second.zero_grad()
    loss.backward()
    second.step()
""",
}

PROGRAMS = {**_FAULTY, **_CORRECT}

_DICE = """
import torch
from torch import nn
import torch.nn.functional as F


def overlap(logits, wanted):
    share = logits.sigmoid()
    {made}
    return 1 - (2 * (share * wanted).sum() + 1) / (share.sum() + wanted.sum() + 1)


def both(logits, wanted):
    return F.binary_cross_entropy_with_logits(logits, wanted) + overlap(logits, wanted)


net = nn.Linear(4, 6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    wanted = (x.repeat(1, 2)[:, :6] > 0).float()
    loss = both(net(x), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

_RANKS = """
import torch
from torch import nn


class Objective:
    def ranks(self, scores):
        return {ranks}

    def __call__(self, scores, grades):
        gain = (grades / torch.log2(1 + self.ranks(scores))).sum(1)
        terms = {{"point": (scores - grades).square().mean(), "list": (1 - gain).mean()}}
        return sum(terms.values()), terms


net, objective = nn.Linear(4, 1), Objective()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 5, 4):
    loss, terms = objective(net(x).squeeze(-1), x[..., 0].relu())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

PROGRAMS |= {
    "what both terms compare with is data": _DICE.format(made="share = (share > 0.5).float()  # <- BP606"),
    "both terms are soft": _DICE.format(made="wanted = wanted.clamp(0, 1)"),
    "ranks in a term that is kept in a dict": _RANKS.format(
        ranks="scores.argsort(1, descending=True).argsort(1) + 1.0  # <- BP606"
    ),
    "soft ranks in a term that is kept in a dict": _RANKS.format(
        ranks="0.5 + torch.sigmoid(scores[:, None] - scores[:, :, None]).sum(2)"
    ),
    "a maximum without its history is taken away and added again": """
import torch
from torch import nn

net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for x in torch.randn(4, 8, 4):
    scores = net(x)
    top = scores.max().detach()
    loss = (scores - top).exp().sum().log() + top
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}

PROGRAMS |= {
    "what was drawn is scored, valued and counted": """
import torch
from torch import nn
from torch.distributions import Bernoulli

logits, scale = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.ones(()))
optimizer = torch.optim.SGD([logits, scale], lr=0.1)
rows = torch.randn(6)
for _ in range(4):
    choice = Bernoulli(logits=logits)
    chosen = choice.sample((16,))
    value = (chosen * rows * scale).sum(1).tanh() - 0.4 * chosen.sum(1) - 0.5 * scale.square()
    loss = -(choice.log_prob(chosen).sum(1) * value.detach()).mean() - value.mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
