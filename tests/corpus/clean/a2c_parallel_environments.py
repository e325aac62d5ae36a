import torch
from torch import nn

torch.manual_seed(0)
N_ENV, T, GAMMA = 4, 5, 0.95


class VecEnv:
    def reset(self):
        self.s = torch.randn(N_ENV, 3)
        return self.s

    def step(self, a):
        reward = (a == (self.s[:, 0] > 0).long()).float()
        done = torch.rand(N_ENV) < 0.1
        self.s = torch.where(done[:, None], torch.randn(N_ENV, 3), 0.9 * self.s + 0.2 * torch.randn(N_ENV, 3))
        return self.s, reward, done.float()


actor = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 2))
critic = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optim = torch.optim.RMSprop([*actor.parameters(), *critic.parameters()], lr=7e-3, alpha=0.99, eps=1e-5)
envs = VecEnv()
obs = envs.reset()
for update in range(6):
    logps, values, rewards, masks, entropies = [], [], [], [], []
    for t in range(T):
        dist = torch.distributions.Categorical(logits=actor(obs))
        action = dist.sample()
        values.append(critic(obs).squeeze(-1))
        logps.append(dist.log_prob(action))
        entropies.append(dist.entropy())
        obs, r, done = envs.step(action)
        rewards.append(r)
        masks.append(1 - done)
    with torch.no_grad():
        R = critic(obs).squeeze(-1)
    returns = []
    for r, m in zip(reversed(rewards), reversed(masks)):
        R = r + GAMMA * R * m
        returns.insert(0, R)
    returns, values, logps = torch.stack(returns), torch.stack(values), torch.stack(logps)
    advantage = returns - values
    policy_loss = -(logps * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * torch.stack(entropies).mean()
    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*actor.parameters(), *critic.parameters()], max_norm=0.5)
    optim.step()
    print(update, rewards[-1].mean().item(), value_loss.item())
