import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(2, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x))).squeeze(-1)


class Ensemble:
    def __init__(self, members, lr):
        models = [Surrogate() for _ in range(members)]
        self.params, self.buffers = stack_module_state(models)
        self.params = {name: value.detach() for name, value in self.params.items()}
        self.template = copy.deepcopy(models[0]).to("meta")
        self.velocity = {name: torch.zeros_like(value) for name, value in self.params.items()}
        self.lr = lr

    def predict(self, params, x):
        return functional_call(self.template, params, (x,))

    def loss(self, params, x, y):
        return (self.predict(params, x) - y).square().mean()

    def step(self, x, y):
        grads, losses = vmap(grad_and_value(self.loss))(self.params, x, y)
        for name, g in grads.items():
            self.velocity[name] = 0.9 * self.velocity[name] + g
            self.params[name] = self.params[name] - self.lr * self.velocity[name]
        return losses

    def spread(self, x):
        return vmap(self.predict, (0, None))(self.params, x).std(0)


torch.manual_seed(38)
ensemble = Ensemble(5, lr=0.03)
x = 2 * torch.rand(60, 2) - 1
y = (3 * x[:, 0]).sin() + x[:, 1] ** 2
for step in range(20):
    rows = torch.randint(0, 60, (5, 32))
    losses = ensemble.step(x[rows], y[rows])
    if step % 5 == 0:
        print(step, losses.mean().item())
print("spread", ensemble.spread(torch.tensor([[0.0, 0.0], [3.0, 3.0]])).tolist())
