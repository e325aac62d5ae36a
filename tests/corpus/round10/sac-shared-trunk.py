# /// case
# title = "The chain of the heads' parameters is used up by the freeze, so the unfreeze finds nothing"
# category = "flags"
# kind = "never-unfrozen"
# kinds_also_ok = ["exhausted-parameter-generator", "frozen-by-mistake", "requires-grad-left-false"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["head_params", "chain", "requires_grad_", "q1", "q2"]
# symptom = "from the second update on only the trunk is trained; the Q heads stay as they are"
# symptom_check = "not any(p.requires_grad for p in [*learner.q1.parameters(), *learner.q2.parameters()])"
# cause = "itertools.chain is an iterator: the first loop exhausts it, later loops run over nothing."
# fix = "list(itertools.chain(...))"
# ///
import copy
import itertools

import torch
import torch.nn as nn
import torch.nn.functional as F


class SoftLearner:
    def __init__(self, pixels, features, actions, alpha=0.05, gamma=0.9):
        self.alpha, self.gamma = alpha, gamma
        self.trunk = nn.Sequential(nn.Linear(pixels, features), nn.LayerNorm(features), nn.Tanh())
        self.q1, self.q2 = (self._head(features + actions, 1) for _ in range(2))
        self.pi = self._head(features, 2 * actions)
        self.slow = copy.deepcopy(nn.ModuleList([self.trunk, self.q1, self.q2])).requires_grad_(False)
        self.head_params = itertools.chain(self.q1.parameters(), self.q2.parameters())  #- here
#+         self.head_params = list(itertools.chain(self.q1.parameters(), self.q2.parameters()))
        learned = [*self.trunk.parameters(), *self.q1.parameters(), *self.q2.parameters()]
        self.q_opt = torch.optim.Adam(learned, lr=3e-3)
        self.pi_opt = torch.optim.Adam(self.pi.parameters(), lr=1e-3)

    @staticmethod
    def _head(n_in, n_out):
        return nn.Sequential(nn.Linear(n_in, 32), nn.ReLU(), nn.Linear(32, n_out))

    def sample(self, z):
        mu, log_std = self.pi(z).chunk(2, -1)
        dist = torch.distributions.Normal(mu, log_std.clamp(-4, 1).exp())
        u = dist.rsample()
        logp = (dist.log_prob(u) - 2 * (0.6931 - u - F.softplus(-2 * u))).sum(-1, keepdim=True)
        return torch.tanh(u), logp

    def learn(self, img, act, rew, nxt):
        with torch.no_grad():
            a2, logp2 = self.sample(self.trunk(nxt))
            za = torch.cat([self.slow[0](nxt), a2], -1)
            y = rew + self.gamma * (torch.min(self.slow[1](za), self.slow[2](za)) - self.alpha * logp2)
        za = torch.cat([self.trunk(img), act], -1)
        q_loss = F.mse_loss(self.q1(za), y) + F.mse_loss(self.q2(za), y)
        self.q_opt.zero_grad()
        q_loss.backward()
        self.q_opt.step()

        for p in self.head_params:
            p.requires_grad_(False)  #! also
        z = self.trunk(img).detach()
        a, logp = self.sample(z)
        za = torch.cat([z, a], -1)
        pi_loss = (self.alpha * logp - torch.min(self.q1(za), self.q2(za))).mean()
        self.pi_opt.zero_grad()
        pi_loss.backward()
        self.pi_opt.step()
        for p in self.head_params:
            p.requires_grad_(True)  #! also
        with torch.no_grad():
            for s, p in zip(self.slow.parameters(), itertools.chain(*(m.parameters() for m in (self.trunk, self.q1, self.q2)))):
                s.lerp_(p, 0.05)
        return q_loss.item()


torch.manual_seed(2)
camera = torch.randn(2, 16) / 2
pos = torch.rand(2000, 2) * 2 - 1
push = torch.rand(2000, 2) * 2 - 1
moved = (pos + 0.25 * push).clamp(-1, 1)
reward = -moved.norm(dim=-1, keepdim=True)
learner, curve = SoftLearner(16, 16, 2), []
for _ in range(200):
    rows = torch.randint(2000, (64,))
    curve.append(learner.learn(pos[rows] @ camera, push[rows], reward[rows], moved[rows] @ camera))
print("q loss", sum(curve[:20]) / 20, sum(curve[-20:]) / 20)
