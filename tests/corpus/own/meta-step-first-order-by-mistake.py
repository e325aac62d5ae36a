# /// case
# category = "graph"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["grads"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
init_w = nn.Parameter(torch.randn(1, 8) * 0.3)
init_b = nn.Parameter(torch.zeros(1))
log_lr = nn.Parameter(torch.tensor(-2.0))
meta = torch.optim.Adam([init_w, init_b, log_lr], lr=1e-2)


def task():
    w = torch.randn(1, 8)
    return lambda n: (lambda x: (x, x @ w.T + 0.5))(torch.randn(n, 8))


for it in range(4):
    sample = task()
    x, y = sample(10)
    inner = ((x @ init_w.T + init_b - y) ** 2).mean()
    gw, gb = torch.autograd.grad(inner, (init_w, init_b), create_graph=True)
    curvature = gw.pow(2).sum() + gb.pow(2).sum()
    (hg,) = torch.autograd.grad(curvature, init_w, retain_graph=True)  #- here
#+     (hg,) = torch.autograd.grad(curvature, init_w, create_graph=True)
    fast_w = init_w - log_lr.exp() * gw
    xq, yq = sample(10)
    outer = ((xq @ fast_w.T + init_b - yq) ** 2).mean() + 1e-2 * hg.pow(2).sum()  #! also
    meta.zero_grad()
    outer.backward()
    meta.step()
    print(it, outer.item())
