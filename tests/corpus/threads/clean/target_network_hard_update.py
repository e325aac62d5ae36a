import copy

import torch
from torch import nn

torch.manual_seed(40)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target = copy.deepcopy(policy).eval()
opt = torch.optim.Adam(policy.parameters(), lr=1e-3)
for step in range(20):
    s, a, r, s2 = torch.randn(8, 4), torch.randint(0, 2, (8, 1)), torch.rand(8), torch.randn(8, 4)
    with torch.no_grad():
        y = r + 0.9 * target(s2).max(1).values
    loss = nn.functional.smooth_l1_loss(policy(s).gather(1, a).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 5 == 4:
        target.load_state_dict(policy.state_dict())
