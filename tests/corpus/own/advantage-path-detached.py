# /// case
# category = "mode"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["features", "encoder"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder, policy = nn.Linear(6, 10), nn.Linear(10, 3)
opt = torch.optim.Adam([*encoder.parameters(), *policy.parameters()], lr=1e-2)
for _ in range(3):
    obs = torch.randn(16, 6)
    features = encoder(obs).relu().detach()  #- here
#+     features = encoder(obs).relu()
    logits = policy(features)
    loss = nn.functional.cross_entropy(logits, torch.randint(0, 3, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(encoder.weight.grad)
