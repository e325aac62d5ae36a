# /// case
# category = "graph"
# kind = "needless-retain-graph"
# severity = "note"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
regressor = nn.Linear(5, 1)
opt = torch.optim.SGD(regressor.parameters(), lr=0.1)
for x in torch.randn(4, 12, 5):
    loss = (regressor(x).squeeze(1) - x.mean(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward(retain_graph=True)  #- here
#+     loss.backward()
    opt.step()
print(loss.item())
