# /// case
# category = "mode"
# kind = "graph-break-non-differentiable"
# severity = "warning"
# names = ["routed", "gate"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
gate = nn.Linear(4, 3)
experts = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))
opt = torch.optim.Adam([*gate.parameters(), *experts.parameters()], lr=1e-2)
for _ in range(3):
    x = torch.randn(10, 4)
    choice = gate(x).argmax(-1)  #- here
    onehot = nn.functional.one_hot(choice, 3).float()  #-
#+     onehot = gate(x).softmax(-1)
    out = sum(onehot[:, i : i + 1] * expert(x) for i, expert in enumerate(experts))
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(gate.weight.grad)
