import torch
from torch import nn
from torch.distributions import Bernoulli


class Walker:
    limit = 10

    def reset(self):
        self.place, self.age = float(torch.randint(-2, 3, ())), 0
        return torch.tensor([self.place / 5])

    def step(self, right):
        self.place += 1.0 if right else -1.0
        self.age += 1
        return torch.tensor([self.place / 5]), -abs(self.place) / 5, self.age == self.limit


class Reinforce:
    def __init__(self, episodes_per_step=4, gamma=0.9, lr=2e-2):
        self.policy = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr, maximize=True)
        self.episodes_per_step, self.gamma = episodes_per_step, gamma
        self.baseline = 0.0

    def play(self, env):
        state, done, log_probs, rewards = env.reset(), False, [], []
        while not done:
            dist = Bernoulli(logits=self.policy(state).squeeze())
            action = dist.sample()
            state, reward, done = env.step(bool(action))
            log_probs.append(dist.log_prob(action))
            rewards.append(reward)
        return torch.stack(log_probs), rewards

    def returns(self, rewards):
        total, out = 0.0, []
        for reward in rewards[::-1]:
            total = reward + self.gamma * total
            out.append(total)
        return torch.tensor(out[::-1])

    def learn(self, env, steps):
        for _ in range(steps):
            for _ in range(self.episodes_per_step):
                log_probs, rewards = self.play(env)
                goal = self.returns(rewards)
                objective = (log_probs * (goal - self.baseline)).sum()
                (objective / self.episodes_per_step).backward()
                self.baseline = 0.9 * self.baseline + 0.1 * goal.mean().item()
            self.optimizer.step()
            self.optimizer.zero_grad()
            yield self.baseline


torch.manual_seed(107)
agent = Reinforce()
print([round(value, 3) for value in agent.learn(Walker(), steps=6)])
