# /// case
# title = "copy.copy of the policy network as target network"
# category = "identity"
# kind = "target-network-alias"
# kinds_also_ok = ["copy-is-alias"]
# severity = "warning"
# names = ["target_net", "copy"]
# symptom = "target and policy share every parameter"
# symptom_check = "target_net[0].weight is policy_net[0].weight"
# cause = "copy.copy is shallow"
# fix = "copy.deepcopy"
# evidence = [
#     { url = "https://github.com/datawhalechina/easy-rl/pull/117", title = "distinguish Qnet and set detach() on TD target" },
#     { url = "https://github.com/zhangj111/astnn/issues/8", title = "Shallow copy when finding best_model" },
# ]
# ///
import copy

import torch
from torch import nn

torch.manual_seed(9)
policy_net = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
target_net = copy.copy(policy_net)  #- here
#+ target_net = copy.deepcopy(policy_net)
target_net.eval()
optimizer = torch.optim.Adam(policy_net.parameters(), lr=1e-3)


def td_loss(batch, gamma=0.95):
    s, a, r, s2 = batch
    q = policy_net(s).gather(1, a)
    with torch.no_grad():
        best = policy_net(s2).argmax(1, keepdim=True)
        y = r + gamma * target_net(s2).gather(1, best)  #! also
    return nn.functional.mse_loss(q, y)


for i in range(30):
    batch = (torch.randn(16, 4), torch.randint(0, 3, (16, 1)), torch.rand(16, 1), torch.randn(16, 4))
    optimizer.zero_grad()
    td_loss(batch).backward()
    optimizer.step()
    if i % 10 == 0:
        target_net.load_state_dict(policy_net.state_dict())  #! also
