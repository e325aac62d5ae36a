import torch

torch.manual_seed(0)
params = [torch.randn(4, 3, requires_grad=True), torch.zeros(3, requires_grad=True)]
data, goal = torch.randn(20, 4), torch.randn(20, 3)


def loss_of(params):
    w, b = params
    return (data @ w + b - goal).square().mean()


for _ in range(5):
    grads = torch.autograd.grad(loss_of(params), params)
    params = [(p - 0.1 * g).detach().requires_grad_() for p, g in zip(params, grads)]
print(loss_of(params).item())
