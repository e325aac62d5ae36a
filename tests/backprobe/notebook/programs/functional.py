# %%
import torch
from torch.func import functional_call, grad, vmap

torch.manual_seed(4)
model = torch.nn.Linear(3, 1)
params = {name: value.detach() for name, value in model.named_parameters()}


def loss_of(params, sample, target):
    return (functional_call(model, params, (sample,)) - target).pow(2).sum()


# %%
samples, targets = torch.arange(12.0).reshape(4, 3) / 10, torch.ones(4, 1)
per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))(params, samples, targets)
{name: tuple(value.shape) for name, value in per_sample.items()}
# %%
torch.autograd.functional.jacobian(lambda t: t.pow(2), torch.tensor([1.0, 2.0]))
# %%
first = torch.tensor(2.0, requires_grad=True)
(slope,) = torch.autograd.grad(first**3, first, create_graph=True)
torch.autograd.grad(slope, first)
