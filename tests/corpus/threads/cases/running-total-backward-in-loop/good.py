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
    total.backward()
    opt.step()
    print(epoch, total.item())
reference = sum(nn.functional.mse_loss(model(x), y) for x, y in tasks)
(expected,) = torch.autograd.grad(reference, model.weight)
print((model.weight.grad - expected).norm())
