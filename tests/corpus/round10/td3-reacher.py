# /// case
# title = "The critics step after the actor's backward has added its gradients to theirs"
# category = "accumulation"
# kind = "actor-loss-accumulates-in-critic"
# kinds_also_ok = ["gradients-of-two-losses-mixed", "stale-gradients-at-step", "step-after-wrong-backward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["critic_opt", "actor_loss", "backward", "step"]
# symptom = "the critics' error grows instead of falling and the values at the policy's actions end far below what a good policy gets"
# symptom_check = "min(e['td'] for e in log[-20:]) > 1.0"
# cause = "actor_loss.backward() fills the critics' .grad too, and critic_opt.step() applies the sum, raising Q at the policy's actions."
# fix = "step the critics before the actor's loss is formed"
# ///
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim import Adam


@dataclass
class Config:
    updates: int = 300
    batch: int = 64
    gamma: float = 0.9
    tau: float = 0.05
    smooth: float = 0.1
    lr: float = 3e-3


class TwinCritic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(obs_dim + act_dim, 32), nn.ReLU(), nn.Linear(32, 1)) for _ in range(2)
        )

    def forward(self, obs, act):
        x = torch.cat([obs, act], -1)
        return [head(x).squeeze(-1) for head in self.heads]


def reacher_transitions(n):
    obs = torch.rand(n, 2) * 2 - 1
    act = torch.rand(n, 2) * 2 - 1
    nxt = (obs + 0.3 * act).clamp(-1.5, 1.5)
    return obs, act, -nxt.square().sum(-1), nxt


def train(cfg, replay):
    actor = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2), nn.Tanh())
    critic = TwinCritic(2, 2)
    actor_t, critic_t = deepcopy(actor), deepcopy(critic)
    actor_opt, critic_opt = Adam(actor.parameters(), lr=cfg.lr), Adam(critic.parameters(), lr=cfg.lr)
    log = []
    for _ in range(cfg.updates):
        rows = torch.randint(len(replay[0]), (cfg.batch,))
        obs, act, rew, nxt = (t[rows] for t in replay)
        with torch.no_grad():
            a2 = (actor_t(nxt) + cfg.smooth * torch.randn_like(act).clamp(-2, 2)).clamp(-1, 1)
            backup = rew + cfg.gamma * torch.min(*critic_t(nxt, a2))
        critic_opt.zero_grad()  #! also
        actor_opt.zero_grad()
        critic_loss = sum((q - backup).square().mean() for q in critic(obs, act))
        critic_loss.backward()  #! here
#+         critic_opt.step()
        actor_loss = -critic(obs, actor(obs))[0].mean()  #! also
        actor_loss.backward()  #! here
        critic_opt.step()  #- here
        actor_opt.step()
        with torch.no_grad():
            for slow, fast in ((actor_t, actor), (critic_t, critic)):
                for s, f in zip(slow.parameters(), fast.parameters()):
                    s.mul_(1 - cfg.tau).add_(f, alpha=cfg.tau)
        log.append({"td": critic_loss.item(), "q": -actor_loss.item()})
    return actor, critic, log


torch.manual_seed(5)
actor, critic, log = train(Config(), reacher_transitions(4000))
print(log[0], log[-1])
