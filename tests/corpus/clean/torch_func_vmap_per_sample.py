import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(0)
net = nn.Linear(5, 2)
params = {k: v.detach() for k, v in net.named_parameters()}


def loss_fn(params, x, y):
    return nn.functional.cross_entropy(functional_call(net, params, (x[None],)), y[None])


per_sample = vmap(grad(loss_fn), in_dims=(None, 0, 0))
for x in torch.randn(3, 8, 5):
    grads = per_sample(params, x, torch.randint(0, 2, (8,)))
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
    factor = (1.0 / norms).clamp(max=1.0)
    params = {k: v - 0.1 * (grads[k] * factor.view(-1, *[1] * (grads[k].dim() - 1))).mean(0) for k, v in params.items()}
print(norms)
