import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
params = {k: v.detach() for k, v in net.named_parameters()}


def loss_fn(p, x, y):
    return (functional_call(net, p, (x,)) - y).pow(2).mean()


x = torch.randn(40, 3)
y = x.sum(1, keepdim=True).sin()
velocity = {k: torch.zeros_like(v) for k, v in params.items()}
for step in range(10):
    grads, loss = grad_and_value(loss_fn)(params, x, y)
    velocity = {k: 0.9 * velocity[k] + g for k, g in grads.items()}
    params = {k: p - 0.05 * velocity[k] for k, p in params.items()}
    print(step, loss.item())
per_sample, _ = vmap(grad_and_value(loss_fn), in_dims=(None, 0, 0))(params, x, y)
print({k: tuple(g.shape) for k, g in per_sample.items()})
net.load_state_dict(params)
