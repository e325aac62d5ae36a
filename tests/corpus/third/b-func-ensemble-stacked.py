# /// case
# title = "Optimizer over the unstacked models of a vmapped ensemble"
# category = "functional"
# kind = "optimizer-holds-other-model"
# severity = "warning"
# severity_by_writer = "error"
# names = ["params", "stack_module_state", "opt"]
# difficulty = "hard"
# symptom = "All ensemble losses stay constant; the stacked parameters get gradients, nothing is stepped."
# symptom_check = "torch.equal(trace[0], trace[-1])"
# cause = "stack_module_state returns new leaf tensors; the optimizer was built on the parameters of the original models."
# fix = "Optimize params.values()."
# evidence = [{ url = "https://github.com/pytorch/pytorch/pull/92274" }, { url = "https://github.com/pytorch/functorch/issues/280" }]
# ///
"""Deep ensemble trained with vmap."""
import copy

import torch
from torch import nn
from torch.func import functional_call, stack_module_state, vmap


def make_member():
    return nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 1))


torch.manual_seed(0)
members = [make_member() for _ in range(4)]
params, buffers = stack_module_state(members)  #! here


def make_loss(member):
    skeleton = copy.deepcopy(member).to("meta")

    def member_loss(p, b, x, y):
        return nn.functional.mse_loss(functional_call(skeleton, (p, b), (x,)), y)

    return vmap(member_loss, in_dims=(0, 0, None, None))


ensemble_loss = make_loss(members[0])
opt = torch.optim.Adam([p for m in members for p in m.parameters()], lr=1e-2)  #- here
#+ opt = torch.optim.Adam(params.values(), lr=1e-2)

x = torch.linspace(-2, 2, 80).unsqueeze(1)
y = torch.sin(2 * x)
trace = []
for step in range(40):
    losses = ensemble_loss(params, buffers, x, y)
    opt.zero_grad()
    losses.sum().backward()
    opt.step()  #! here
    trace.append(losses.detach())
print(trace[0].tolist(), trace[-1].tolist())
