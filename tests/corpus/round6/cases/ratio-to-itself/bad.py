import torch
import torch.nn as nn
from torch.distributions import Categorical


class Rollout:
    def __init__(self, obs, actions, returns):
        self.obs, self.actions, self.returns = obs, actions, returns
        self.advantage = (returns - returns.mean()) / (returns.std() + 1e-8)


class PPO:
    def __init__(self, policy, clip=0.2, epochs=6, lr=1e-2):
        self.policy, self.clip, self.epochs = policy, clip, epochs
        self.opt = torch.optim.Adam(policy.parameters(), lr=lr)

    def logp(self, obs, actions):
        return Categorical(logits=self.policy(obs)).log_prob(actions)

    def learn(self, data):
        for _ in range(self.epochs):
            with torch.no_grad():
                old = self.logp(data.obs, data.actions)
            ratio = (self.logp(data.obs, data.actions) - old).exp()
            clipped = ratio.clamp(1 - self.clip, 1 + self.clip)
            loss = -torch.min(ratio * data.advantage, clipped * data.advantage).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item(), ratio.detach()


torch.manual_seed(38)
algo = PPO(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)))
for it in range(4):
    obs = torch.randn(128, 4)
    with torch.no_grad():
        actions = Categorical(logits=algo.policy(obs)).sample()
    value, ratio = algo.learn(Rollout(obs, actions, obs.gather(1, actions[:, None])[:, 0]))
    print(it, value, ratio.min().item(), ratio.max().item())
