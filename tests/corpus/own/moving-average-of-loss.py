# /// case
# category = "graph"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["smooth", "baseline"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
actor = nn.Linear(4, 2)
sgd = torch.optim.SGD(actor.parameters(), lr=0.1)
baseline = torch.zeros(())
for episode in range(3):
    logits = actor(torch.randn(8, 4))
    cost = nn.functional.cross_entropy(logits, torch.randint(0, 2, (8,)))
    baseline = 0.9 * baseline + 0.1 * cost  #- here
#+     baseline = 0.9 * baseline + 0.1 * cost.detach()
    objective = (cost - baseline).pow(2) + cost
    sgd.zero_grad()
    objective.backward()  #! also
    sgd.step()
print(float(baseline))
