# /// case
# title = "Second critic's optimizer is never zeroed"
# category = "optimizer-wiring"
# kind = "missing-zero-grad"
# severity = "warning"
# severity_by_writer = "error"
# names = ["critic2_opt", "critic2", "q2"]
# difficulty = "hard"
# symptom = "Training looks plausible; gradients of the second critic are the sum over all updates so far."
# symptom_check = "log[-1][3] > 5 * log[-1][2] and log[0][3] < 5 * log[0][2]"
# cause = "critic1_opt.zero_grad() is called twice (copy-paste); critic2's gradients are accumulated over all iterations before each step."
# fix = "Call critic2_opt.zero_grad() before the second backward."
# evidence = [{ url = "https://github.com/Adversarial-Deep-Learning/code-soup/issues/69" }]
# ///
"""Offline TD3-like critic training with clipped double Q."""
import torch
import torch.nn.functional as F
from torch import nn


class Critic(nn.Module):
    def __init__(self, obs=4, act=2):
        super().__init__()
        self.l1 = nn.Linear(obs + act, 32)
        self.l2 = nn.Linear(32, 32)
        self.q = nn.Linear(32, 1)

    def forward(self, obs, act):
        h = F.relu(self.l1(torch.cat([obs, act], 1)))
        return self.q(F.relu(self.l2(h))).squeeze(-1)


def grad_norm(module):
    return torch.cat([p.grad.flatten() for p in module.parameters()]).norm().item()


@torch.no_grad()
def soft_update(target, online, tau):
    for t, p in zip(target.parameters(), online.parameters()):
        t.lerp_(p, tau)


class Agent:
    gamma, tau = 0.95, 0.02

    def __init__(self):
        self.critic1, self.critic2 = Critic(), Critic()
        self.target1, self.target2 = Critic(), Critic()
        self.target1.load_state_dict(self.critic1.state_dict())
        self.target2.load_state_dict(self.critic2.state_dict())
        self.critic1_opt = torch.optim.SGD(self.critic1.parameters(), lr=5e-3)
        self.critic2_opt = torch.optim.SGD(self.critic2.parameters(), lr=5e-3)

    def update(self, obs, act, rew, nxt, nxt_act):
        with torch.no_grad():
            q_next = torch.min(self.target1(nxt, nxt_act), self.target2(nxt, nxt_act))
            target = rew + self.gamma * q_next
        q1_loss = F.mse_loss(self.critic1(obs, act), target)
        self.critic1_opt.zero_grad()
        q1_loss.backward()
        n1 = grad_norm(self.critic1)
        self.critic1_opt.step()
        q2_loss = F.mse_loss(self.critic2(obs, act), target)
        self.critic1_opt.zero_grad()  #- here
#+         self.critic2_opt.zero_grad()
        q2_loss.backward()  #! here
        n2 = grad_norm(self.critic2)
        self.critic2_opt.step()  #! also
        soft_update(self.target1, self.critic1, self.tau)
        soft_update(self.target2, self.critic2, self.tau)
        return q1_loss.item(), q2_loss.item(), n1, n2


torch.manual_seed(1)
agent = Agent()
obs, act, nxt, nxt_act = torch.randn(512, 4), torch.rand(512, 2), torch.randn(512, 4), torch.rand(512, 2)
rew = obs.sum(1) - act.pow(2).sum(1)
log = []
for step in range(40):
    i = torch.randint(0, 512, (64,))
    log.append(agent.update(obs[i], act[i], rew[i], nxt[i], nxt_act[i]))
for row in (log[0], log[-1]):
    print("q1 {:.3f} q2 {:.3f} |g1| {:.3f} |g2| {:.3f}".format(*row))
