# /// case
# title = "Hessian-vector helper differentiates a gradient that was made without create_graph"
# category = "helper"
# kind = "missing-create-graph"
# kinds_also_ok = ["root-without-history"]
# severity = "error"
# names = ["grad", "hvp"]
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "create_graph is missing in the first grad()"
# fix = "create_graph=True"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/31987", title = "The behavior of tensor.grad after backpropgate." },
#     { url = "https://github.com/tinygrad/tinygrad/issues/2584", title = "taking second derivatives" },
# ]
# ///
import torch
from torch import nn


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


def hvp(loss, params, vector):
    first = flat(torch.autograd.grad(loss, params))  #- here
#+     first = flat(torch.autograd.grad(loss, params, create_graph=True))
    return flat(torch.autograd.grad(first @ vector, params, retain_graph=True))  #! also


def largest_eigenvalue(model, x, y, steps=6):
    params = list(model.parameters())
    v = torch.randn(sum(p.numel() for p in params))
    for _ in range(steps):
        v = v / v.norm()
        loss = nn.functional.mse_loss(model(x), y)
        v = hvp(loss, params, v)  #! also
    return v.norm().item()


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
print(largest_eigenvalue(model, torch.randn(30, 4), torch.randn(30, 1)))
