import torch
from torch import nn

torch.manual_seed(0)
X, Xv = torch.randn(30, 10), torch.randn(30, 10)
w_true = torch.zeros(10)
w_true[:3] = torch.tensor([1.0, -2.0, 1.5])
y, yv = X @ w_true + 0.5 * torch.randn(30), Xv @ w_true + 0.5 * torch.randn(30)
log_lam = torch.full((10,), -2.0, requires_grad=True)
hyper = torch.optim.Adam([log_lam], lr=0.1)
for outer in range(6):
    A = X.T @ X / 30 + torch.diag(log_lam.exp())
    w = torch.linalg.solve(A, X.T @ y / 30)
    val = (Xv @ w - yv).pow(2).mean()
    hyper.zero_grad()
    val.backward()
    hyper.step()
    print(outer, val.item(), log_lam.grad.norm().item())
