"""Leaves and non-leaves: the tutorial snippet."""

import torch

x = torch.ones(5)
W = torch.randn(5, 3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
z = torch.matmul(x, W) + b
y_pred = torch.sigmoid(z)
loss = torch.nn.functional.binary_cross_entropy(y_pred, torch.zeros(3))
loss.backward()
print(W.grad, b.grad)
