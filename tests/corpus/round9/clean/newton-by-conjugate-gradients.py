import torch


def logistic(weights, features, labels, ridge):
    margins = labels * (features @ weights)
    return torch.nn.functional.softplus(-margins).mean() + 0.5 * ridge * weights.square().sum()


def conjugate_gradients(apply, b, iterations=10, tol=1e-8):
    x = torch.zeros_like(b)
    r = b.clone()
    p, rr = r, r @ r
    for _ in range(iterations):
        q = apply(p)
        step = rr / (p @ q)
        x = x + step * p
        r = r - step * q
        new = r @ r
        if new < tol:
            break
        p, rr = r + new / rr * p, new
    return x


def newton_step(objective, weights):
    value = objective(weights)
    gradient, = torch.autograd.grad(value, weights, create_graph=True)

    def hessian_times(v):
        return torch.autograd.grad(gradient, weights, v, retain_graph=True)[0]

    direction = conjugate_gradients(hessian_times, gradient.detach())
    with torch.no_grad():
        rate = 1.0
        while objective(weights - rate * direction) > value - 1e-4 * rate * (gradient @ direction):
            rate *= 0.5
            if rate < 1e-3:
                break
        weights -= rate * direction
    return value.item(), gradient.detach().norm().item()


torch.manual_seed(24)
features = torch.randn(100, 6, dtype=torch.float64)
labels = torch.sign(features @ torch.randn(6, dtype=torch.float64) + 0.5 * torch.randn(100, dtype=torch.float64))
weights = torch.zeros(6, dtype=torch.float64, requires_grad=True)
for iteration in range(5):
    value, size = newton_step(lambda w: logistic(w, features, labels, 1e-2), weights)
    print(iteration, f"{value:.6f} {size:.2e}")
