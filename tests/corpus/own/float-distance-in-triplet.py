# /// case
# category = "mode"
# kind = "graph-break-item"
# severity = "warning"
# names = ["margin", "gap"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
embed = nn.Linear(6, 3)
sgd = torch.optim.SGD(embed.parameters(), lr=0.1)


def triplet(anchor, positive, negative):
    near = float((embed(anchor) - embed(positive)).norm())  #- here
    far = float((embed(anchor) - embed(negative)).norm())  #- here
    return torch.tensor(max(0.0, 1.0 + near - far), requires_grad=True)  #- also
#+     near = (embed(anchor) - embed(positive)).norm()
#+     far = (embed(anchor) - embed(negative)).norm()
#+     return (1.0 + near - far).clamp(min=0.0)


for _ in range(3):
    loss = triplet(*torch.randn(3, 6))
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print(loss.item())
