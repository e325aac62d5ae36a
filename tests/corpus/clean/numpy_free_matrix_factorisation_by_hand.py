import torch

torch.manual_seed(0)
R = torch.randn(15, 3) @ torch.randn(3, 10)
mask = torch.rand(15, 10) < 0.7
U = torch.randn(15, 3).mul_(0.1).requires_grad_()
V = torch.randn(10, 3).mul_(0.1).requires_grad_()
lr, reg = 0.02, 0.01
for epoch in range(40):
    pred = U @ V.T
    loss = ((pred - R)[mask] ** 2).sum() + reg * (U.norm() ** 2 + V.norm() ** 2)
    loss.backward()
    with torch.no_grad():
        U -= lr * U.grad
        V -= lr * V.grad
        U.grad = None
        V.grad.zero_()
    if epoch % 10 == 0:
        print(epoch, loss.item())
