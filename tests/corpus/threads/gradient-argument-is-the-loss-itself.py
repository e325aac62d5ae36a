# /// case
# title = "loss.backward(loss): the vector of losses weights itself"
# category = "root"
# kind = "grad-output-mismatch"
# kinds_also_ok = ["wrong-gradient-argument"]
# severity = "warning"
# names = ["backward", "losses"]
# symptom = "the gradient is that of half the sum of squares, not of the sum"
# symptom_check = "not torch.allclose(net.weight.grad, wanted)"
# cause = "the losses themselves are given as gradient="
# fix = "sum and call backward()"
# evidence = [
#     { url = "https://github.com/WisconsinAIVision/MaskPoint/issues/7", title = "RuntimeError: grad can be implicitly created only for scalar outputs" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(44)
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-8)
loss_fn = nn.CrossEntropyLoss(reduction="none")
x = torch.randn(24, 4)
y = torch.randint(0, 3, (24,))
for epoch in range(5):
    for xb, yb in zip(x.chunk(3), y.chunk(3)):
        optimizer.zero_grad()
        losses = loss_fn(net(xb), yb)
        losses.backward(losses)  #- here
#+         losses.sum().backward()
        optimizer.step()
(wanted,) = torch.autograd.grad(loss_fn(net(xb), yb).sum(), net.weight)
print(losses.mean().item(), (net.weight.grad - wanted).abs().max().item())
