# /// case
# category = "graph"
# kind = "graph-grows-each-step"
# severity = "warning"
# names = ["memory"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
write, read = nn.Linear(4, 4), nn.Linear(4, 1)
both = nn.ModuleList([write, read])
memory = torch.zeros(1, 4)
for x in torch.randn(7, 1, 4):
    memory = torch.tanh(write(memory) + x)  #! here
    loss = read(memory).pow(2).sum()
    both.zero_grad()
    loss.backward(retain_graph=True)  #- also
#+     loss.backward()
#+     memory = memory.detach()
    print(write.weight.grad.norm().item())
