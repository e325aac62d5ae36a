# /// case
# category = "graph"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["trunk", "shared"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(6, 12), nn.Tanh())
policy_head, value_head = nn.Linear(12, 3), nn.Linear(12, 1)
params = [*trunk.parameters(), *policy_head.parameters(), *value_head.parameters()]
opt = torch.optim.Adam(params, lr=1e-3)
for _ in range(2):
    shared = trunk(torch.randn(9, 6))  #! also
    policy_loss = -policy_head(shared).log_softmax(-1)[:, 0].mean()
    value_loss = value_head(shared).pow(2).mean()
    opt.zero_grad()
    policy_loss.backward()  #- also
    value_loss.backward()  #- here
#+     (policy_loss + value_loss).backward()
    opt.step()
