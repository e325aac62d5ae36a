# /// case
# category = "wiring"
# kind = "module-built-each-forward"
# severity = "warning"
# names = ["project"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 7)
#+         self.project = nn.Linear(7, 2)

    def forward(self, x):
        h = self.inner(x).relu()
        project = nn.Linear(h.shape[-1], 2)  #- here
        return project(h)  #-
#+         return self.project(h)


mixer = Mixer()
opt = torch.optim.SGD(mixer.parameters(), lr=0.1)
for _ in range(4):
    loss = nn.functional.cross_entropy(mixer(torch.randn(9, 4)), torch.randint(0, 2, (9,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
