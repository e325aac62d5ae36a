# /// case
# category = "training"
# kind = "nll-without-log"
# severity = "warning"
# names = ["probs"]
# ///
#-
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
graph_conv, out = nn.Linear(4, 8), nn.Linear(8, 3)
opt = torch.optim.Adam([*graph_conv.parameters(), *out.parameters()], lr=1e-2)
adjacency = (torch.rand(10, 10) > 0.6).float() + torch.eye(10)
x, y = torch.randn(10, 4), torch.randint(0, 3, (10,))
for _ in range(3):
    h = F.relu(adjacency @ graph_conv(x))
    probs = F.softmax(adjacency @ out(h), dim=1)  #- also
#+     probs = F.log_softmax(adjacency @ out(h), dim=1)
    loss = F.nll_loss(probs, y)  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
