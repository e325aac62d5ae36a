import torch
import torch.nn as nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.AdamW(policy.parameters(), lr=3e-3)
group = 8
for it in range(6):
    prompts = torch.randn(10, 6).repeat_interleave(group, 0)
    dist = torch.distributions.Categorical(logits=policy(prompts))
    answers = dist.sample()
    reward = (answers == prompts[:, :5].argmax(1)).float().view(-1, group)
    advantage = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).flatten()
    logp = dist.log_prob(answers)
    ratio = torch.exp(logp - logp.detach())
    loss = -(ratio * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(it, reward.mean().item())
