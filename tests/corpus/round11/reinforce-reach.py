# /// case
# title = "The score-function estimator scores an action drawn with rsample()"
# category = "loss"
# kind = "rsample-in-score-function"
# kinds_also_ok = ["policy-gradient-cancels", "action-not-detached", "reparameterised-sample-in-reinforce", "missing-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["rsample", "log_prob", "action", "policy"]
# symptom = "the gradient of the mean network is zero, and the policy only changes its spread"
# symptom_check = "policy.mean[0].weight.grad.abs().max().item() < 1e-5"
# cause = "log_prob(action) is differentiated through the reparameterised action too, and the two paths to the mean cancel."
# fix = "draw the action with sample()"
# ///
import torch
from torch import nn
from torch.distributions import Independent, Normal


class ReachTask:
    """A planar arm tip that is to be moved to a goal, many copies at a time."""

    horizon = 8

    def __init__(self, copies):
        self.copies = copies

    def reset(self):
        self.tip = torch.zeros(self.copies, 2)
        angle = torch.rand(self.copies) * 2 * torch.pi
        self.goal = torch.stack([angle.cos(), angle.sin()], -1)
        return self.observation()

    def observation(self):
        return torch.cat([self.tip, self.goal, self.goal - self.tip], -1)

    def step(self, action):
        self.tip = self.tip + 0.3 * action.clamp(-1.5, 1.5)
        return self.observation(), -(self.goal - self.tip).norm(dim=-1)


class GaussianPolicy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.mean = nn.Sequential(nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, act_dim))  #! also
        self.log_std = nn.Parameter(torch.full((act_dim,), -0.5))

    def forward(self, obs):
        return Independent(Normal(self.mean(obs), self.log_std.clamp(-2, 0.5).exp().expand(len(obs), -1)), 1)


def rollout(env, policy):
    obs = env.reset()
    log_probs, rewards = [], []
    for _ in range(env.horizon):
        dist = policy(obs)
        action = dist.rsample()  #- here
#+         action = dist.sample()
        log_probs.append(dist.log_prob(action))  #! also
        obs, reward = env.step(action.detach())
        rewards.append(reward)
    return torch.stack(log_probs), torch.stack(rewards)


def returns_to_go(rewards, gamma=0.95):
    running = torch.zeros_like(rewards[0])
    collected = []
    for reward in rewards.flip(0):
        running = reward + gamma * running
        collected.append(running)
    return torch.stack(collected[::-1])


torch.manual_seed(33)
env, policy = ReachTask(96), GaussianPolicy(6, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
scores = []
for iteration in range(70):
    log_probs, rewards = rollout(env, policy)
    gain = returns_to_go(rewards)
    gain = (gain - gain.mean(1, keepdim=True)) / (gain.std(1, keepdim=True) + 1e-6)
    loss = -(log_probs * gain).mean()  #! also
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    scores.append(rewards[-1].mean().item())
    if iteration % 10 == 0:
        spread = policy.log_std.exp().mean().item()
        print(f"{iteration:3d} final reward {scores[-1]:.3f} spread {spread:.3f}")
