# /// case
# category = "mode"
# kind = "graph-break-non-differentiable"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
import torch.nn as nn
import torch.nn.functional as F


class KeyValue(nn.Module):
    def __init__(self, slots=8, width=6):
        super().__init__()
        self.keys = nn.Parameter(torch.randn(slots, width))
        self.values = nn.Parameter(torch.randn(slots, width))
        self.ask = nn.Linear(width, width)

    def forward(self, x):
        affinity = F.linear(self.ask(x), self.keys)
        address = F.one_hot(affinity.argmax(dim=-1), affinity.size(-1)).to(x.dtype)  #- here
#+         address = F.gumbel_softmax(affinity, hard=True)
        return address @ self.values  #! also


torch.manual_seed(0)
memory, out = KeyValue(), nn.Linear(6, 3)
opt = torch.optim.Adam([{"params": memory.parameters()}, {"params": out.parameters(), "lr": 1e-2}])
for x, y in zip(torch.randn(5, 16, 6), torch.randint(0, 3, (5, 16))):
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(out(memory(x)), y).backward()
    opt.step()
