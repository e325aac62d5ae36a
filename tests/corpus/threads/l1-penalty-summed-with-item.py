# /// case
# title = "L1 penalty summed as Python floats"
# category = "partial-cut"
# kind = "graph-break-item"
# kinds_also_ok = ["constant-loss-term", "loss-term-without-gradient"]
# severity = "warning"
# names = ["penalty", "l1_norm"]
# symptom = "the penalty is a float, so no weight shrinks"
# symptom_check = "not isinstance(penalty, torch.Tensor)"
# cause = ".item() takes each norm out of the graph"
# fix = "sum the tensors"
# evidence = [
#     { url = "https://github.com/Lightning-AI/lightning-thunder/pull/1481", title = "Register grad for torch.Tensor.item" },
#     { url = "https://github.com/DeepRank/deeprank/issues/210", title = "[potential bug]" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)


def l1_norm(model):
    total = 0.0
    for name, p in model.named_parameters():
        if name.endswith("weight"):
            total += p.abs().sum().item()  #- here
#+             total = total + p.abs().sum()
    return total


features = torch.randn(200, 30)
coef = torch.zeros(30, 1)
coef[:4] = 1.5
response = features @ coef + 0.1 * torch.randn(200, 1)
model = nn.Linear(30, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
mse = nn.MSELoss()
for it in range(40):
    optimizer.zero_grad()
    fit = mse(model(features), response)
    penalty = l1_norm(model)  #! also
    loss = fit + 0.05 * penalty  #! also
    loss.backward()
    optimizer.step()
print(fit.item(), float(penalty))
