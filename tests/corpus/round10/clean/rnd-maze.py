import torch
from torch import nn
from torch.distributions import Categorical


class Novelty:
    def __init__(self, obs_dim, features=16, lr=1e-3):
        self.target = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, features))
        for p in self.target.parameters():
            p.requires_grad = False
        self.predictor = nn.Sequential(nn.Linear(obs_dim, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, features))
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), lr=lr)
        self.scale = 1.0

    def error(self, obs):
        return (self.predictor(obs) - self.target(obs)).square().mean(-1)

    def bonus(self, obs):
        with torch.no_grad():
            error = self.error(obs)
            self.scale = 0.9 * self.scale + 0.1 * error.std().item()
            return error / (self.scale + 1e-6)

    def learn(self, obs):
        loss = self.error(obs).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


MOVES = torch.tensor([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]]) * 0.25


def episode(policy, novelty, n, horizon):
    pos, logps, bonuses, seen = torch.zeros(n, 2), [], [], []
    for _ in range(horizon):
        dist = Categorical(logits=policy(pos))
        move = dist.sample()
        pos = (pos + MOVES[move]).clamp(-1, 1)
        logps.append(dist.log_prob(move))
        bonuses.append(novelty.bonus(pos))
        seen.append(pos)
    return torch.stack(logps), torch.stack(bonuses), torch.cat(seen)


torch.manual_seed(90)
policy = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 4))
policy_opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
novelty, curve = Novelty(2), []
for _ in range(60):
    logp, bonus, seen = episode(policy, novelty, n=32, horizon=12)
    to_go = bonus.flip(0).cumsum(0).flip(0)
    advantage = (to_go - to_go.mean(1, keepdim=True)) / (to_go.std() + 1e-6)
    loss = -(logp * advantage).mean()
    policy_opt.zero_grad()
    loss.backward()
    policy_opt.step()
    curve.append(novelty.learn(seen))
print("prediction error", curve[0], curve[-1])
