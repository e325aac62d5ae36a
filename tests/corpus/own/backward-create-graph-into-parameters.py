# /// case
# category = "graph"
# kind = "parameter-gradient-cycle"
# severity = "warning"
# names = ["net", "loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(4):
    loss = net(torch.randn(10, 2)).pow(2).mean()
    net.zero_grad(set_to_none=False)
    loss.backward(create_graph=True)  #- here
    curvature = sum(p.grad.pow(2).sum() for p in net.parameters())  #-
#+     grads = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
#+     curvature = sum(g.pow(2).sum() for g in grads)
#+     for p, g in zip(net.parameters(), grads):
#+         p.grad = g.detach()
    opt.step()
    print(curvature.item())
