import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)
policy, critic = nn.Linear(5, 3), nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 1))
pi_opt, q_opt = torch.optim.Adam(policy.parameters(), 3e-3), torch.optim.Adam(critic.parameters(), 3e-3)


def sample(logits):
    soft = F.gumbel_softmax(logits, tau=1.0)
    hard = F.one_hot(soft.argmax(-1), 3).float()
    return soft + (hard - soft).detach()


for frame in range(6):
    state, taken = torch.randn(16, 5), torch.randint(0, 3, (16,))
    q_loss = F.mse_loss(critic(torch.cat([state, F.one_hot(taken, 3).float()], 1)), torch.randn(16, 1))
    q_opt.zero_grad()
    q_loss.backward()
    q_opt.step()
    critic.requires_grad_(False)
    pi_loss = -critic(torch.cat([state, sample(policy(state))], 1)).mean()
    pi_opt.zero_grad()
    pi_loss.backward()
    pi_opt.step()
    critic.requires_grad_(True)
print(pi_loss.item())
