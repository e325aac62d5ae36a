# /// case
# category = "graph"
# kind = "gradient-doubled"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
layer = nn.Linear(4, 1, bias=False)
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    loss = layer(torch.randn(6, 4)).sum() / 6
    opt.zero_grad()
    loss.backward(retain_graph=True)  #- also
    loss.backward()  #! here
    opt.step()
print(layer.weight.grad)
