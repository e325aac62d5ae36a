import torch
import torch.nn.functional as F
from torch.func import functional_call


class Sine:
    def __init__(self):
        self.amp, self.phase = 1 + 4 * torch.rand(()), 3 * torch.rand(())

    def sample(self, n):
        x = torch.rand(n, 1) * 10 - 5
        return x, self.amp * torch.sin(x + self.phase)


torch.manual_seed(9)
net = torch.nn.Sequential(torch.nn.Linear(1, 20), torch.nn.Tanh(), torch.nn.Linear(20, 1))
meta = torch.optim.Adam(net.parameters(), lr=1e-3)
inner_lr, inner_steps, second_order = 0.02, 3, True


def adapt(x, y):
    weights = dict(net.named_parameters())
    for _ in range(inner_steps):
        loss = F.mse_loss(functional_call(net, weights, (x,)), y)
        grads = torch.autograd.grad(loss, list(weights.values()), create_graph=second_order)
        weights = {k: w - inner_lr * g for (k, w), g in zip(weights.items(), grads)}
    return weights, grads


for it in range(5):
    total = 0.0
    for _ in range(4):
        task = Sine()
        weights, grads = adapt(*task.sample(10))
        x, y = task.sample(10)
        total = total + F.mse_loss(functional_call(net, weights, (x,)), y)
    meta.zero_grad()
    total.div(4).backward()
    meta.step()
    print(it, total.item() / 4)
