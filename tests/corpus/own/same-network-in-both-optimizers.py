# /// case
# category = "wiring"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["value", "opt_value"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
policy, value = nn.Linear(4, 2), nn.Linear(4, 1)
opt_policy = torch.optim.Adam(policy.parameters(), lr=1e-3)
opt_value = torch.optim.Adam(policy.parameters(), lr=1e-3)  #- here
#+ opt_value = torch.optim.Adam(value.parameters(), lr=1e-3)
for _ in range(3):
    s = torch.randn(10, 4)
    returns = torch.randn(10)
    v = value(s).squeeze(1)
    dist = torch.distributions.Categorical(logits=policy(s))
    a = dist.sample()
    loss = -(dist.log_prob(a) * (returns - v.detach())).mean() + (v - returns).pow(2).mean()
    opt_policy.zero_grad()
    opt_value.zero_grad()
    loss.backward()
    opt_policy.step()
    opt_value.step()
    print(loss.item())
