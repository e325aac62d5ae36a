# /// case
# title = "All weights initialised to zero"
# category = "vanishing-exploding"
# kind = "zero-init-no-gradient"
# severity = "warning"
# names = ["net"]
# difficulty = "medium"
# symptom = "silent: hidden layers get exactly zero gradients"
# symptom_check = "bool((net[0].weight.grad == 0).all()) and bool((net[2].weight.grad == 0).all())"
# cause = "with zero outgoing weights nothing flows back; units stay identical"
# fix = "random init (leave the default)"
# evidence = [
#     { url = "https://github.com/yz93/LAVT-RIS/issues/25" },
#     { url = "https://dennissxz.github.io/data-science-handbook/37-neural-networks/03-trainability.html" },
# ]
# ///
import torch
from torch import nn


def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.zeros_(m.weight)  #- here
#+         nn.init.xavier_uniform_(m.weight)
        nn.init.zeros_(m.bias)


torch.manual_seed(5)
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 3))
net.apply(init_weights)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(50, 6), torch.randint(0, 3, (50,))
for _ in range(10):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
print(loss.item())
