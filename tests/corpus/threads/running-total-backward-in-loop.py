# /// case
# title = "The running total of the losses is walked back at every turn"
# category = "root"
# kind = "gradient-doubled"
# kinds_also_ok = ["loss-counted-twice"]
# severity = "warning"
# names = ["total", "backward"]
# symptom = "the gradient counts the first task three times and the last once"
# symptom_check = "not torch.allclose(model.weight.grad, expected)"
# cause = "total.backward() in the loop, where total still has the earlier losses"
# fix = "one backward after the loop"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/17568", title = "GPU memory leak on Pytorch 1.0?" },
#     { url = "https://github.com/rentruewang/brief/issues/1", title = "loss.backward(retain_graph=True) in optimization of G ?" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(2)
model = nn.Linear(5, 1)
opt = torch.optim.SGD(model.parameters(), lr=1e-9)
tasks = [(torch.randn(8, 5), torch.randn(8, 1)) for _ in range(3)]
for epoch in range(3):
    opt.zero_grad()
    total = 0.0
    for x, y in tasks:
        total = total + nn.functional.mse_loss(model(x), y)
        total.backward(retain_graph=True)  #- here
#+     total.backward()
    opt.step()
    print(epoch, total.item())
reference = sum(nn.functional.mse_loss(model(x), y) for x, y in tasks)
(expected,) = torch.autograd.grad(reference, model.weight)
print((model.weight.grad - expected).norm())
