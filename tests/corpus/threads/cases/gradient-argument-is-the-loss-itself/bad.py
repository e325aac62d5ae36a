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
        losses.backward(losses)
        optimizer.step()
(wanted,) = torch.autograd.grad(loss_fn(net(xb), yb).sum(), net.weight)
print(losses.mean().item(), (net.weight.grad - wanted).abs().max().item())
