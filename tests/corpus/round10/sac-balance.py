# /// case
# title = "The actor's loss is formed before the critic's step changes the weights it runs through"
# category = "in-place"
# kind = "step-between-forward-and-backward"
# kinds_also_ok = ["weights-modified-before-backward", "in-place-modification-by-optimizer", "stale-graph-after-step"]
# severity = "error"
# names = ["actor_loss", "critic_opt", "_apply"]
# symptom = "backward of the actor's loss raises at the first update"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "The critic's optimizer changes in place the weights that the actor's graph has saved."
# fix = "form the actor's loss after the critic's step"
# ///
from collections import namedtuple

import torch
from torch import nn
from torch.distributions import Normal

Batch = namedtuple("Batch", "obs act rew nxt done")


class Net(nn.Sequential):
    def __init__(self, n_in, n_out, hidden=32):
        super().__init__(nn.Linear(n_in, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, n_out))


class SAC:
    def __init__(self, obs_dim=2, act_dim=1, gamma=0.8, alpha=0.02):
        self.gamma, self.alpha = gamma, alpha
        self.actor, self.critic, self.target = Net(obs_dim, 2 * act_dim), Net(obs_dim + act_dim, 2), Net(obs_dim + act_dim, 2)
        self.target.load_state_dict(self.critic.state_dict())
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=3e-3)

    def propose(self, obs):
        mean, log_std = self.actor(obs).chunk(2, dim=-1)
        normal = Normal(mean, log_std.clamp(-5, 1).exp())
        raw = normal.rsample()
        act = raw.tanh()
        return act, (normal.log_prob(raw) - (1 - act.square() + 1e-6).log()).sum(-1)

    def critic_objective(self, b):
        with torch.no_grad():
            act, logp = self.propose(b.nxt)
            soft = self.target(torch.cat([b.nxt, act], -1)).min(-1).values - self.alpha * logp
            backup = b.rew + self.gamma * (1 - b.done) * soft
        return (self.critic(torch.cat([b.obs, b.act], -1)) - backup[:, None]).square().mean()

    def actor_objective(self, b):
        act, logp = self.propose(b.obs)
        return (self.alpha * logp - self.critic(torch.cat([b.obs, act], -1)).min(-1).values).mean()

    @staticmethod
    def _apply(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()  #! also

    def update(self, batch):
        critic_loss = self.critic_objective(batch)
#+         self._apply(self.critic_opt, critic_loss)
        actor_loss = self.actor_objective(batch)  #! here
        self._apply(self.critic_opt, critic_loss)  #- also
        self._apply(self.actor_opt, actor_loss)  #! also
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.critic.parameters()):
                slow.lerp_(fast, 0.05)
        return critic_loss.item()


def balance_data(n, dt=0.1):
    obs = torch.rand(n, 2) - 0.5
    act = torch.rand(n, 1) * 2 - 1
    speed = obs[:, 1] + dt * (5 * obs[:, 0].sin() + 6 * act[:, 0])
    nxt = torch.stack([obs[:, 0] + dt * speed, speed], -1)
    done = (nxt[:, 0].abs() > 0.5).float()
    return Batch(obs, act, 1 - 4 * nxt[:, 0].square() - done, nxt, done)


torch.manual_seed(4)
data, agent, curve = balance_data(3000), SAC(), []
for _ in range(200):
    rows = torch.randint(3000, (64,))
    curve.append(agent.update(Batch(*(t[rows] for t in data))))
print(sum(curve[:10]) / 10, sum(curve[-10:]) / 10)
