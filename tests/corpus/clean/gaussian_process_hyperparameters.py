import math

import torch

torch.manual_seed(0)
x = torch.linspace(-2, 2, 25, dtype=torch.float64)[:, None]
y = torch.sin(2 * x[:, 0]) + 0.1 * torch.randn(25, dtype=torch.float64)
raw = {name: torch.zeros((), dtype=torch.float64, requires_grad=True) for name in ("length", "height", "noise")}


def positive(name):
    return torch.nn.functional.softplus(raw[name])


def kernel(a, b):
    return positive("height") * torch.exp(-0.5 * (a - b.T).square() / positive("length") ** 2)


def negative_log_marginal():
    covariance = kernel(x, x) + (positive("noise") + 1e-6) * torch.eye(len(x), dtype=torch.float64)
    chol = torch.linalg.cholesky(covariance)
    alpha = torch.cholesky_solve(y[:, None], chol)
    return 0.5 * (y @ alpha[:, 0]) + chol.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


lbfgs = torch.optim.LBFGS(raw.values(), lr=0.3, max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    value = negative_log_marginal()
    value.backward()
    return value


for _ in range(3):
    print(float(lbfgs.step(closure)))

point = torch.tensor([[0.3]], dtype=torch.float64, requires_grad=True)
with torch.no_grad():
    solve = torch.linalg.solve(kernel(x, x) + positive("noise") * torch.eye(25, dtype=torch.float64), y)
mean = (kernel(point, x) @ solve).sum()
(slope,) = torch.autograd.grad(mean, point, create_graph=True)
(bend,) = torch.autograd.grad(slope.sum(), point)
print(mean.item(), slope.item(), bend.item())
