import torch


def init(key, sizes):
    gen = torch.Generator().manual_seed(key)
    return [
        {"w": torch.randn(a, b, generator=gen).div_(a**0.5).requires_grad_(), "b": torch.zeros(b, requires_grad=True)}
        for a, b in zip(sizes, sizes[1:])
    ]


def tree_map(fn, *trees):
    return [{key: fn(*(tree[at][key] for tree in trees)) for key in layer} for at, layer in enumerate(trees[0])]


def leaves(tree):
    return [value for layer in tree for value in layer.values()]


def unflatten(tree, values):
    values = iter(values)
    return [{key: next(values) for key in layer} for layer in tree]


def apply(params, x):
    *hidden, last = params
    for layer in hidden:
        x = torch.tanh(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]


def loss_fn(params, batch):
    x, y = batch
    return torch.mean((apply(params, x) - y) ** 2)


def adam_update(params, grads, m, v, t, lr=0.01, b1=0.9, b2=0.99):
    m = tree_map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = tree_map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)

    def moved(p, m, v):
        return (p - lr * (m / (1 - b1**t)) / ((v / (1 - b2**t)).sqrt() + 1e-8)).detach().requires_grad_()

    return tree_map(moved, params, m, v), m, v


params = init(0, [3, 16, 1])
m = tree_map(torch.zeros_like, params)
v = tree_map(torch.zeros_like, params)
history = []
for t in range(1, 9):
    x = torch.randn(32, 3)
    value = loss_fn(params, (x, x.sin().sum(1, keepdim=True)))
    grads = unflatten(params, torch.autograd.grad(value, leaves(params)))
    params, m, v = adam_update(params, grads, m, v, t)
    history.append(value.detach())
print(torch.stack(history))
