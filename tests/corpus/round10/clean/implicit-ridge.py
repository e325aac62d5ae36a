import torch


def inner_objective(w, log_penalty, x, y):
    return 0.5 * (x @ w - y).square().mean() + 0.5 * (log_penalty.exp() * w.square()).sum()


def solve_inner(log_penalty, x, y):
    with torch.no_grad():
        gram = x.T @ x / len(x) + torch.diag(log_penalty.exp())
        w = torch.linalg.solve(gram, x.T @ y / len(x))
    return w.requires_grad_()


def conjugate_gradient(product, b, iterations=25, tolerance=1e-10):
    v = torch.zeros_like(b)
    r = b.clone()
    d = r.clone()
    rr = r @ r
    for _ in range(iterations):
        if rr < tolerance:
            break
        Ad = product(d)
        step = rr / (d @ Ad)
        v += step * d
        r -= step * Ad
        rr, previous = r @ r, rr
        d = r + rr / previous * d
    return v


def hypergradient(w, log_penalty, train, valid):
    outer = 0.5 * (valid[0] @ w - valid[1]).square().mean()
    (direction,) = torch.autograd.grad(outer, w)
    (slope,) = torch.autograd.grad(inner_objective(w, log_penalty, *train), w, create_graph=True)

    def hessian_product(v):
        return torch.autograd.grad(slope, w, grad_outputs=v, retain_graph=True)[0]

    v = conjugate_gradient(hessian_product, direction)
    (mixed,) = torch.autograd.grad(slope, log_penalty, grad_outputs=v)
    return -mixed, outer.item()


def identification_data(n, generator):
    x = torch.randn(n, 20, generator=generator)
    coefficients = torch.zeros(20)
    coefficients[:4] = torch.tensor([1.5, -2.0, 0.7, 1.0])
    return x, x @ coefficients + 0.5 * torch.randn(n, generator=generator)


g = torch.Generator().manual_seed(18)
train, valid = identification_data(30, g), identification_data(60, g)
log_penalty = torch.full((20,), -3.0, requires_grad=True)
optimizer = torch.optim.Adam([log_penalty], lr=0.1)
curve = []
for _ in range(60):
    w = solve_inner(log_penalty, *train)
    log_penalty.grad, outer = hypergradient(w, log_penalty, train, valid)
    optimizer.step()
    curve.append(outer)
print("validation", curve[0], "->", curve[-1])
print("penalty", log_penalty.detach().exp()[:6].tolist())
