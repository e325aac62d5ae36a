import torch

x = torch.ones(1, requires_grad=True)
y = x.clone()
for _ in range(30_000):
    y = y + 1.0
y.backward()
print(x.grad, y.item())
del y
z = x * 2
print(z.requires_grad)
