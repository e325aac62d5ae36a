import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(56)
net = nn.Linear(4, 2)
params = {k: v.detach().clone() for k, v in net.named_parameters()}


def loss_fn(p, x, y):
    return nn.functional.cross_entropy(functional_call(net, p, (x.unsqueeze(0),)), y.unsqueeze(0))


per_sample = vmap(grad(loss_fn), in_dims=(None, 0, 0))
for _ in range(6):
    x, y = torch.randn(16, 4), torch.randint(0, 2, (16,))
    grads = per_sample(params, x, y)
    params = {k: p - 0.1 * grads[k].clamp(-1, 1).mean(0) for k, p in params.items()}
net.load_state_dict(params)
print(net(torch.randn(2, 4)).sum().item())
