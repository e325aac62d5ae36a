# /// case
# title = "Outputs are written into buffer.data: the history is lost for that term"
# category = "graph-break"
# kind = "graph-break-data"
# severity = "warning"
# names = ["pooled", "experts"]
# difficulty = "medium"
# symptom = "silent: expert parameters keep grad None"
# symptom_check = "all(p.grad is None for e in experts for p in e.parameters())"
# cause = "assignment through .data is invisible to autograd"
# fix = "collect in a list and torch.stack"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/6990" },
#     { url = "https://github.com/Ugenteraan/Deep_Hierarchical_Classification/issues/6" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(41)
experts = nn.ModuleList(nn.Linear(5, 3) for _ in range(4))
gate = nn.Linear(5, 4)
opt = torch.optim.Adam([*experts.parameters(), *gate.parameters()], lr=4e-3)

for step in range(6):
    x = torch.randn(14, 5)
    goal = torch.tanh(x[:, :3])
    mix = gate(x).softmax(-1)
    pooled = torch.zeros(4, 14, 3)  #-
    for j, expert in enumerate(experts):  #-
        pooled.data[j] = expert(x)  #- here
#+     pooled = torch.stack([expert(x) for expert in experts])
    y = torch.einsum("ebd,be->bd", pooled, mix)
    loss = nn.functional.mse_loss(y, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
