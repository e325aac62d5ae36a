"""BP607 graph-break-sample."""

PROGRAMS = {
    "in a VAE's method": """
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def encode(self, x):
        mean, spread = self.enc(x).chunk(2, -1)
        return Normal(mean, spread.exp())

    def forward(self, x):
        latent = self.encode(x).sample()  # <- BP607
        return self.dec(latent)

vae = Vae()
opt = torch.optim.Adam(vae.parameters(), lr=1e-2)
for x in torch.rand(3, 10, 6):
    loss = (vae(x) - x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "a sample beside a term of the distribution": """
import torch
from torch import nn
from torch.distributions import Normal

enc, dec = nn.Linear(6, 2), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)
for x in torch.rand(3, 10, 6):
    posterior = Normal(enc(x), 1.0)
    latent = posterior.sample()  # <- BP607
    loss = (dec(latent) - x).pow(2).mean() + posterior.mean.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "discrete values have no rsample": """
import torch
from torch import nn
from torch.distributions import Bernoulli

gate, net = nn.Linear(4, 4), nn.Linear(4, 1)
opt = torch.optim.Adam([*gate.parameters(), *net.parameters()], lr=1e-2)
for x in torch.rand(3, 10, 4):
    keep = Bernoulli(logits=gate(x)).sample()  # <- BP607
    loss = net(x * keep).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "right: log-probabilities kept in a list of tuples": """
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
""",
    "right: actions drawn under no_grad feed the critic, the policy's loss draws its own": """
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(3)
actor, twins = nn.Linear(3, 2), nn.ModuleList(nn.Linear(5, 1) for _ in range(2))
actor_opt = torch.optim.Adam(actor.parameters(), 1e-2)
twins_opt = torch.optim.Adam(twins.parameters(), 1e-2)

def worth(s, a):
    return torch.cat([q(torch.cat([s, a], 1)) for q in twins], 1)

state = torch.randn(16, 3)
for _ in range(4):
    with torch.no_grad():
        act = Normal(actor(state), 0.3).sample()
        after = 0.9 * state + 0.1 * torch.cat([act, act[:, :1]], 1)
        goal = -after.square().sum(1, keepdim=True)
    twins_loss = (worth(state, act) - goal).square().mean()
    twins_opt.zero_grad()
    twins_loss.backward()
    twins_opt.step()
    dist = Normal(actor(state), 0.3)
    fresh = dist.rsample()
    actor_loss = (0.1 * dist.log_prob(fresh).sum(1) - torch.min(worth(state, fresh), dim=1).values).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    state = after
""",
    "right: a sample goes into the critic's loss and, through the world, into the next state": """
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(3)
actor, critic = nn.Linear(3, 3), nn.Linear(6, 1)
actor_opt = torch.optim.Adam(actor.parameters(), 1e-2)
critic_opt = torch.optim.Adam(critic.parameters(), 1e-2)
state = torch.randn(16, 3)
for _ in range(4):
    act = Normal(actor(state), 0.3).sample()
    after = 0.9 * state + 0.1 * act
    goal = -after.square().sum(1, keepdim=True)
    critic_loss = (critic(torch.cat([state, act], 1)) - goal).square().mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    fresh = Normal(actor(state), 0.3).rsample()
    actor_loss = -critic(torch.cat([state, fresh], 1)).mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
""",
    "the actor's own action in a loss with the entropy beside it, after the critic's": """
import torch
from torch import nn
from torch.distributions import Normal

torch.manual_seed(3)
actor, critic = nn.Linear(3, 6), nn.Linear(6, 1)
actor_opt = torch.optim.Adam(actor.parameters(), 1e-2)
critic_opt = torch.optim.Adam(critic.parameters(), 1e-2)

def draw(state):
    mean, spread = actor(state).chunk(2, 1)
    return Normal(mean, spread.exp())

state = torch.randn(16, 3)
for _ in range(4):
    with torch.no_grad():
        act = draw(state).sample()
        after = 0.9 * state + 0.1 * act
        goal = -after.square().sum(1, keepdim=True)
    critic_loss = (critic(torch.cat([state, act], 1)) - goal).square().mean()
    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()
    dist = draw(state)
    chosen = dist.sample()  # <- BP607
    actor_loss = -critic(torch.cat([state, chosen], 1)).mean() - 0.1 * dist.entropy().mean()
    actor_opt.zero_grad()
    actor_loss.backward()
    actor_opt.step()
    state = after
""",
    "data are scored by a distribution that is made of the sample": """
import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(6, 4), nn.Linear(2, 6)

    def decode(self, z):
        return Bernoulli(logits=self.dec(z))

    def bound(self, x, beta):
        mean, spread = self.enc(x).chunk(2, -1)
        posterior = Normal(mean, spread.exp())
        z = posterior.sample()  # <- BP607
        misfit = -self.decode(z).log_prob(x).sum(-1)
        kl = kl_divergence(posterior, Normal(0.0, 1.0)).sum(-1)
        share = torch.linspace(0.5, 1.5, len(x))  # of each example
        return (share * misfit + beta * kl).mean(), misfit.mean(), kl.mean()

vae = Vae()
opt = torch.optim.Adam(vae.parameters(), lr=1e-2)
for x in torch.rand(4, 10, 6).round():
    opt.zero_grad()
    loss, misfit, kl = vae.bound(x, 0.5)
    loss.backward()
    opt.step()
    print(misfit.item(), kl.item())
""",
    "the divergence is estimated at the sample": """
import torch
from torch import nn
from torch.distributions import Normal

enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)

def step(x):
    mean, spread = enc(x).chunk(2, -1)
    posterior = Normal(mean, spread.exp())
    z = posterior.sample()  # <- BP607
    misfit = (dec(z) - x).pow(2).sum(-1)
    kl = posterior.log_prob(z).sum(-1) - Normal(0.0, 1.0).log_prob(z).sum(-1)
    loss = (misfit + kl).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return kl.mean()

for x in torch.rand(4, 10, 6):
    step(x)
""",
    "likelihoods of several heads are added up in a trainer": """
import torch
from torch import nn
from torch.distributions import Independent, Normal, kl_divergence

class Trainer:
    def __init__(self):
        self.enc, self.left, self.right = nn.Linear(6, 4), nn.Linear(2, 3), nn.Linear(2, 3)
        every = [*self.enc.parameters(), *self.left.parameters(), *self.right.parameters()]
        self.opt = torch.optim.Adam(every, lr=1e-2)

    def likelihood(self, head, z):
        return Independent(Normal(head(z), 1.0), 1)

    def fit(self, batches):
        for x in batches:
            mean, spread = self.enc(x).chunk(2, -1)
            q = Normal(mean, spread.exp())
            z = q.sample()  # <- BP607
            fit = self.likelihood(self.left, z).log_prob(x[:, :3]) + self.likelihood(self.right, z).log_prob(x[:, 3:])
            loss = (kl_divergence(q, Normal(0.0, 1.0)).sum(-1) - fit).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()

Trainer().fit(torch.rand(4, 10, 6))
""",
    "right: a reward weighs the probability of what was drawn, and a curve is printed": """
import torch
from torch import nn
from torch.distributions import Normal

policy, critic = nn.Linear(4, 2), nn.Linear(6, 1)
opt = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=1e-2)
for state in torch.rand(4, 16, 4):
    q = Normal(policy(state), 1.0)
    action = q.sample()
    reward = -(action - state[:, :2]).pow(2).sum(-1)
    value = critic(torch.cat([state, action], 1)).squeeze(1)
    logp = q.log_prob(action).sum(-1)
    loss = -(logp * (reward - value.detach())).mean() + (value - reward).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(logp.mean().item())
""",
    "right: drawn with rsample, scored by what is made of it": """
import torch
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

enc, dec = nn.Linear(6, 4), nn.Linear(2, 6)
opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-2)

def decode(z):
    return Bernoulli(logits=dec(z))

for x in torch.rand(4, 10, 6).round():
    mean, spread = enc(x).chunk(2, -1)
    posterior = Normal(mean, spread.exp())
    misfit = -decode(posterior.rsample()).log_prob(x).sum(-1).mean()
    loss = misfit + kl_divergence(posterior, Normal(0.0, 1.0)).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(decode(posterior.sample()).log_prob(x).mean().item())
""",
    "right: a noisy copy of the data is scored by the model, for which nothing is to be learnt": """
import torch
from torch import nn
from torch.distributions import Normal

net = nn.Linear(6, 6)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

def around(z):
    return Normal(net(z), 1.0)

for x in torch.rand(4, 10, 6):
    noisy = Normal(x, 0.1).sample()
    loss = -around(noisy).log_prob(x).sum(-1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
}
