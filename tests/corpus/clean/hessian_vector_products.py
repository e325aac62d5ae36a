import torch

torch.manual_seed(0)
A = torch.randn(6, 6)
A = A @ A.t() + torch.eye(6)
x = torch.randn(6, requires_grad=True)
(g,) = torch.autograd.grad(0.5 * x @ A @ x + x.pow(4).sum() / 12, x, create_graph=True)
v = torch.randn(6)
for _ in range(4):
    (hv,) = torch.autograd.grad(g, x, v, retain_graph=True)
    v = hv / hv.norm()
(hv,) = torch.autograd.grad(g, x, v)
print((v @ hv).item())
