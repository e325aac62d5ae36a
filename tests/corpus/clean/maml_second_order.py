import torch

torch.manual_seed(0)
theta = {"w": torch.randn(1, 8, requires_grad=True), "b": torch.zeros(8, requires_grad=True), "v": torch.randn(8, 1, requires_grad=True)}
meta = torch.optim.SGD(theta.values(), lr=1e-2)


def model(p, x):
    return torch.tanh(x @ p["w"] + p["b"]) @ p["v"]


for outer in range(3):
    meta.zero_grad()
    for task in range(2):
        phase = torch.rand(1) * 3
        x, x2 = torch.rand(10, 1), torch.rand(10, 1)
        inner = (model(theta, x) - torch.sin(x + phase)).pow(2).mean()
        grads = torch.autograd.grad(inner, list(theta.values()), create_graph=True)
        fast = {name: p - 0.1 * g for (name, p), g in zip(theta.items(), grads)}
        ((model(fast, x2) - torch.sin(x2 + phase)).pow(2).mean() / 2).backward()
    meta.step()
    print(outer, theta["b"].norm().item())
