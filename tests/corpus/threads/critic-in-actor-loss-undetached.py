# /// case
# title = "Policy loss runs back into the critic through the advantage"
# category = "other-loss"
# kind = "tracked-advantage"
# kinds_also_ok = ["other-loss-in-gradient"]
# severity = "warning"
# names = ["advantage", "values"]
# symptom = "the critic gets a gradient from the policy loss"
# symptom_check = "policy_pull is not None"
# cause = "values is not detached in the advantage"
# fix = "detach"
# evidence = [
#     { url = "https://github.com/astariul/encode-attend-navigate-pytorch/issues/2", title = "🐛 Critic not detached from policy loss" },
#     { url = "https://github.com/jingw2/neural-combinatorial-optimization-rl/issues/1", title = "One error for calculating the advantage value" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(7)
actor = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 4))
critic = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=1e-3)


def losses(states, actions, tour_length):
    values = critic(states).view(-1)
    log_prob = torch.log_softmax(actor(states), -1).gather(1, actions[:, None]).squeeze(1)
    advantage = tour_length - values  #- here
#+     advantage = tour_length - values.detach()
    return (advantage * log_prob).mean(), nn.functional.mse_loss(values, tour_length)  #! also


for epoch in range(6):
    states, actions, lengths = torch.randn(32, 5), torch.randint(0, 4, (32,)), torch.rand(32)
    policy_loss, value_loss = losses(states, actions, lengths)
    (policy_pull,) = torch.autograd.grad(policy_loss, critic[0].weight, retain_graph=True, allow_unused=True)
    optimizer.zero_grad()
    (policy_loss + 0.5 * value_loss).backward()
    optimizer.step()
print(policy_loss.item(), value_loss.item())
