# /// case
# title = "The log-probabilities of the rollout keep their graphs"
# category = "retention"
# kind = "backward-twice"
# kinds_also_ok = ["missing-detach"]
# severity = "error"
# names = ["logprobs", "old_logprobs"]
# symptom = "the second epoch walks the rollout's freed graph"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "stored log-probabilities are not detached"
# fix = "detach them, or act without gradients"
# evidence = [
#     { url = "https://github.com/nikhilbarhate99/PPO-PyTorch/issues/18", title = "Ratio Calculation" },
# ]
# ///
import torch
import torch.nn as nn
from torch.distributions import Normal


class Memory:
    def __init__(self):
        self.states, self.actions, self.logprobs, self.rewards = [], [], [], []


class ActorCritic(nn.Module):
    def __init__(self, s=3, a=1):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(s, 32), nn.Tanh(), nn.Linear(32, a))
        self.critic = nn.Sequential(nn.Linear(s, 32), nn.Tanh(), nn.Linear(32, 1))
        self.log_std = nn.Parameter(torch.zeros(a) - 0.5)

    def act(self, state, memory):
        dist = Normal(self.actor(state), self.log_std.exp())
        action = dist.sample()
        memory.states.append(state)
        memory.actions.append(action)
        memory.logprobs.append(dist.log_prob(action).sum(-1))  #! also
        return action

    def evaluate(self, state, action):
        dist = Normal(self.actor(state), self.log_std.exp())
        return dist.log_prob(action).sum(-1), self.critic(state).squeeze(-1), dist.entropy().sum(-1)


def update(policy, optimizer, memory, K_epochs=4, gamma=0.95, eps_clip=0.2):
    rewards, total = [], 0.0
    for r in reversed(memory.rewards):
        total = r + gamma * total
        rewards.insert(0, total)
    rewards = torch.tensor(rewards)
    rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)
    old_states, old_actions = torch.stack(memory.states), torch.stack(memory.actions)
    old_logprobs = torch.stack(memory.logprobs)  #- here
#+     old_logprobs = torch.stack(memory.logprobs).detach()
    for _ in range(K_epochs):
        logprobs, values, entropy = policy.evaluate(old_states, old_actions)
        ratios = torch.exp(logprobs - old_logprobs)  #! also
        advantages = rewards - values.detach()
        surr = torch.min(ratios * advantages, ratios.clamp(1 - eps_clip, 1 + eps_clip) * advantages)
        loss = -surr + 0.5 * (values - rewards).square() - 0.01 * entropy
        optimizer.zero_grad()
        loss.mean().backward()  #! also
        optimizer.step()
    return loss.mean().item()


torch.manual_seed(3)
policy, memory = ActorCritic(), Memory()
optimizer = torch.optim.Adam(policy.parameters(), lr=2e-3)
state = torch.randn(3)
for t in range(24):
    action = policy.act(state, memory)
    state = 0.9 * state + 0.1 * torch.cat([action, torch.randn(2)])
    memory.rewards.append(-state.square().sum().item())
print(update(policy, optimizer, memory))
