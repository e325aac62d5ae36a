# /// case
# title = "Output of a softmax is scaled and shifted in place"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["act", "softmax", "mul_", "add_"]
# symptom = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "softmax saved its result"
# fix = "write out of place"
# evidence = [
#     { url = "https://github.com/thu-ml/tianshou/issues/29", title = "potential bug in the implementation of DDPG" },
# ]
# ///
import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, state_shape, action_shape, low, high):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(state_shape, 32), nn.ReLU(), nn.Linear(32, action_shape))
        self.low, self.high = low, high

    def forward(self, obs):
        act = torch.softmax(self.model(obs), dim=-1)
        act *= self.high - self.low  #- here
        act += self.low  #- also
#+         act = act * (self.high - self.low)
#+         act = act + self.low
        return act


class Critic(nn.Module):
    def __init__(self, state_shape, action_shape):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(state_shape + action_shape, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, obs, act):
        return self.model(torch.cat([obs, act], 1))


class DDPGPolicy:
    def __init__(self, actor, critic):
        self.actor, self.critic = actor, critic
        self.actor_optim = torch.optim.Adam(actor.parameters(), lr=1e-4)
        self.critic_optim = torch.optim.Adam(critic.parameters(), lr=1e-3)

    def learn(self, obs, act, rew):
        critic_loss = nn.functional.mse_loss(self.critic(obs, act), rew)
        self.critic_optim.zero_grad()
        critic_loss.backward()
        self.critic_optim.step()
        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        self.actor_optim.zero_grad()
        actor_loss.backward()  #! also
        self.actor_optim.step()
        return {"loss/actor": actor_loss.item(), "loss/critic": critic_loss.item()}


torch.manual_seed(24)
policy = DDPGPolicy(Actor(6, 3, -2.0, 2.0), Critic(6, 3))
for _ in range(3):
    result = policy.learn(torch.randn(16, 6), torch.rand(16, 3) * 4 - 2, torch.randn(16, 1))
print(result)
