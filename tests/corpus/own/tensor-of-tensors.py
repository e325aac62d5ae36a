# /// case
# category = "mode"
# kind = "graph-break-rebuild"
# severity = "warning"
# names = ["stacked", "scores"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
experts = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
mixing = nn.Parameter(torch.ones(3))
opt = torch.optim.SGD([*experts.parameters(), mixing], lr=0.1)
for x in torch.randn(3, 4):
    scores = [expert(x).squeeze() for expert in experts]
    stacked = torch.tensor([s for s in scores])  #- here
#+     stacked = torch.stack([s for s in scores])
    loss = (stacked * mixing.softmax(0)).sum().pow(2)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
