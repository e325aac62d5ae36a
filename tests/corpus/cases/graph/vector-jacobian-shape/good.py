import torch

x = torch.linspace(0, 1, 6, requires_grad=True)
y = torch.stack([x.sin(), x.cos()])
cotangent = torch.ones(2, 6)
y.backward(gradient=cotangent)
print(x.grad)
