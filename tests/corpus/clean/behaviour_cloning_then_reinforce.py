import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
policy = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
reference = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
expert_s = torch.randn(90, 4)
expert_a = expert_s[:, :3].argmax(1)

opt = torch.optim.Adam(policy.parameters(), lr=1e-2)
for epoch in range(3):
    for i in torch.randperm(90).split(30):
        loss = F.cross_entropy(policy(expert_s[i]), expert_a[i])
        opt.zero_grad()
        loss.backward()
        opt.step()
print("cloned", loss.item())
reference.load_state_dict(policy.state_dict())
reference.requires_grad_(False)

opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
baseline = 0.0
for it in range(6):
    s = torch.randn(32, 4)
    logits = policy(s)
    dist = torch.distributions.Categorical(logits=logits)
    a = dist.sample()
    with torch.no_grad():
        ref = reference(s).log_softmax(-1)
        kl_pen = logits.log_softmax(-1).gather(1, a[:, None]) - ref.gather(1, a[:, None])
        reward = (a == s[:, 1:].argmax(1)).float() - 0.1 * kl_pen.squeeze(1)
    baseline = 0.9 * baseline + 0.1 * reward.mean().item()
    loss = -((reward - baseline) * dist.log_prob(a)).mean() - 0.01 * dist.entropy().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(it, reward.mean().item())
