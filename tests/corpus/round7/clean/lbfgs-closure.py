import torch

torch.manual_seed(130)
t = torch.linspace(0, 4, 50)
data = 2.0 * torch.exp(-0.7 * t) * torch.cos(3 * t) + 0.02 * torch.randn(50)
params = {name: torch.tensor(v, requires_grad=True) for name, v in {"a": 1.0, "k": 0.3, "w": 2.8}.items()}


def model(t):
    return params["a"] * torch.exp(-params["k"] * t) * torch.cos(params["w"] * t)


optimizer = torch.optim.LBFGS(params.values(), lr=0.5, max_iter=5, line_search_fn="strong_wolfe")
evaluations = 0


def closure():
    global evaluations
    evaluations += 1
    optimizer.zero_grad()
    loss = (model(t) - data).square().mean()
    loss.backward()
    return loss


for outer in range(6):
    loss = optimizer.step(closure)
    print(outer, loss.item())
print({k: round(v.item(), 3) for k, v in params.items()}, evaluations)
