# /// case
# title = "Two losses are walked back by themselves and then as a sum"
# category = "root"
# kind = "gradient-doubled"
# kinds_also_ok = ["loss-counted-twice"]
# severity = "warning"
# names = ["resource_loss", "loss"]
# symptom = "every gradient is twice what it should be"
# symptom_check = "not torch.allclose(arch.grad, right, rtol=1e-3)"
# cause = "loss is the sum of the two losses already accumulated"
# fix = "only the sum is walked back"
# evidence = [
#     { url = "https://github.com/SNAS-Series/SNAS-Series/issues/10", title = "Question about two times backward?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(40)
arch = nn.Parameter(1e-3 * torch.randn(4))
ops = nn.ModuleList(nn.Linear(6, 6) for _ in range(4))
cost = torch.tensor([1.0, 2.0, 4.0, 8.0])
optimizer = torch.optim.SGD([arch, *ops.parameters()], lr=1e-8)


def search_step(x, y):
    mix = arch.softmax(0)
    out = sum(m * op(x) for m, op in zip(mix, ops))
    error_loss = nn.functional.mse_loss(out, y)
    resource_loss = 0.1 * (mix * cost).sum()
    loss = resource_loss + error_loss
    (right,) = torch.autograd.grad(loss, arch, retain_graph=True)
    optimizer.zero_grad()
    resource_loss.backward(retain_graph=True)  #- here
    error_loss.backward(retain_graph=True)  #- here
    loss.backward()  #! also
    optimizer.step()
    return right


for _ in range(4):
    right = search_step(torch.randn(16, 6), torch.randn(16, 6))
print(arch.grad, right)
