# /// case
# title = "Hessian-vector product frees the graph before the training backward"
# category = "higher-order"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["hv", "hessian_trace", "grad", "retain_graph", "loss"]
# difficulty = "medium"
# symptom = "RuntimeError in loss.backward(): Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "the second autograd.grad call does not retain the graph, which loss.backward() walks afterwards"
# fix = "retain_graph=True in the product"
# evidence = [{ url = "https://github.com/ItzikMalkiel/MTAdam/issues/2" }, { url = "https://pytorch.org/docs/stable/generated/torch.autograd.grad.html" }]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def rademacher_like(params):
    return [torch.randint(0, 2, p.shape).float() * 2 - 1 for p in params]


def hessian_trace(loss, params, probes=2):
    """Hutchinson estimate of the trace of the Hessian of loss."""
    grads = torch.autograd.grad(loss, params, create_graph=True)
    estimate = 0.0
    for k in range(probes):
        v = rademacher_like(params)
        gv = sum((g * r).sum() for g, r in zip(grads, v))
        hv = torch.autograd.grad(gv, params, retain_graph=k < probes - 1)  #- here
#+         hv = torch.autograd.grad(gv, params, retain_graph=True)
        estimate += sum((h * r).sum().item() for h, r in zip(hv, v)) / probes
    return estimate


class CurvatureScheduler:
    """Lowers the learning rate where the loss surface is sharp."""

    def __init__(self, opt, base_lr, scale):
        self.opt, self.base_lr, self.scale = opt, base_lr, scale

    def step(self, trace):
        for group in self.opt.param_groups:
            group["lr"] = self.base_lr / (1 + max(trace, 0.0) * self.scale)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 3))
params = list(model.parameters())
opt = torch.optim.SGD(params, lr=0.1, momentum=0.9)
sched = CurvatureScheduler(opt, 0.1, 1e-2)
for step in range(12):
    x = torch.randn(48, 6)
    y = (x[:, :3] * x[:, 3:]).argmax(dim=1)
    loss = F.cross_entropy(model(x), y)  #! also
    if step % 4 == 0:
        sched.step(hessian_trace(loss, params))  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(opt.param_groups[0]["lr"], loss.item())
