# /// case
# title = "Clipping is done before backward(): on empty or stale gradients"
# category = "gradient-clipping"
# kind = "clip-before-backward"
# severity = "warning"
# names = ["policy"]
# difficulty = "medium"
# symptom = "silent: gradients used by step() are never clipped"
# symptom_check = "max(used) > 1.0"
# cause = "wrong order"
# fix = "backward, clip, step"
# evidence = [
#     { url = "https://github.com/simchowitzlabpublic/nano-world-model/pull/22" },
#     { url = "https://github.com/pytorch/torchtitan/issues/990" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(13)
policy = nn.Sequential(nn.Linear(3, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.RMSprop(policy.parameters(), lr=1e-3)
used = []
for step in range(6):
    batch = torch.randn(32, 3) * 10
    cost = (policy(batch) - batch.prod(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
#+     cost.backward()
    nn.utils.clip_grad_norm_(policy.parameters(), 0.5)  #! here
    cost.backward()  #-
    used.append(torch.stack([p.grad.norm() for p in policy.parameters()]).norm().item())
    optimizer.step()  #! also
print(used)
