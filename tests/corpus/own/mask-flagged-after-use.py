# /// case
# category = "leaf"
# kind = "requires-grad-after-forward"
# severity = "warning"
# names = ["gate", "gates"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
trunk = nn.Linear(6, 6)
gates = torch.ones(6)
x = torch.randn(10, 6)
#+ gates.requires_grad_(True)
hidden = torch.tanh(trunk(x)) * gates
gates.requires_grad_(True)  #- here
importance = hidden.pow(2).mean()
importance.backward()
ranking = gates.grad  #! also
order = ranking.argsort() if ranking is not None else torch.arange(6)
print(order, ranking)
keep = order[:3]
print(keep.tolist())
