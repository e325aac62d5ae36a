# /// case
# title = "Per-task losses summed with .item() and put back in a new tensor"
# category = "graph-break"
# kind = "graph-break-item"
# severity = "warning"
# names = ["total", "net"]
# difficulty = "medium"
# symptom = "silent: backward() runs, no parameter gets a gradient"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = ".item() gives Python floats; torch.tensor(..., requires_grad=True) is an unrelated leaf"
# fix = "sum the loss tensors"
# evidence = [
#     { url = "https://github.com/RangiLyu/nanodet/issues/7" },
#     { url = "https://github.com/IBM/mi-prometheus/issues/111" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
net = nn.ModuleDict({
    "body": nn.Linear(9, 18),
    "age": nn.Linear(18, 1),
    "income": nn.Linear(18, 1),
})
opt = torch.optim.SGD(net.parameters(), lr=0.02)
mse = nn.MSELoss()
table = torch.randn(25, 9)
truth = {"age": table[:, :1], "income": table[:, 1:2] * 3}

for round_ in range(5):
    trunk = torch.relu(net["body"](table))
    parts = {k: mse(net[k](trunk), t) for k, t in truth.items()}
    total = torch.tensor(sum(v.item() for v in parts.values()), requires_grad=True)  #- here
#+     total = sum(parts.values())
    opt.zero_grad()
    total.backward()
    opt.step()
print({k: round(v.item(), 3) for k, v in parts.items()})
