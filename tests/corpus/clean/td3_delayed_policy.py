import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
actor = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh())


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1 = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.q2 = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, s, a):
        sa = torch.cat([s, a], 1)
        return self.q1(sa), self.q2(sa)

    def Q1(self, s, a):
        return self.q1(torch.cat([s, a], 1))


critic = Critic()
actor_target, critic_target = copy.deepcopy(actor), copy.deepcopy(critic)
actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=3e-4)
for total_it in range(1, 9):
    state, action = torch.randn(24, 3), torch.rand(24, 1) * 2 - 1
    next_state, not_done = torch.randn(24, 3), (torch.rand(24, 1) > 0.05).float()
    reward = -(state.mean(1, keepdim=True) - action) ** 2
    with torch.no_grad():
        noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
        next_action = (actor_target(next_state) + noise).clamp(-1, 1)
        target_Q1, target_Q2 = critic_target(next_state, next_action)
        target_Q = reward + not_done * 0.99 * torch.min(target_Q1, target_Q2)
    current_Q1, current_Q2 = critic(state, action)
    critic_loss = F.mse_loss(current_Q1, target_Q) + F.mse_loss(current_Q2, target_Q)
    critic_optimizer.zero_grad()
    critic_loss.backward()
    critic_optimizer.step()
    if total_it % 2 == 0:
        actor_loss = -critic.Q1(state, actor(state)).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward()
        actor_optimizer.step()
        for param, target_param in zip(critic.parameters(), critic_target.parameters()):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
        for param, target_param in zip(actor.parameters(), actor_target.parameters()):
            target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)
print(critic_loss.item(), actor_loss.item())
