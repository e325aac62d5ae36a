# /// case
# category = "graph"
# kind = "second-backward-freed-graph"
# severity = "error"
# names = ["grad"]
# ///
#-
import torch


def hessian_diagonal(fn, point):
    point = point.clone().requires_grad_()
    value = fn(point)
    (grad,) = torch.autograd.grad(value, point, create_graph=True)
    rows = []
    for i in range(point.numel()):
        (row,) = torch.autograd.grad(grad[i], point)  #- here
#+         (row,) = torch.autograd.grad(grad[i], point, retain_graph=True)
        rows.append(row[i].item())
    return rows


print(hessian_diagonal(lambda p: (p**3).sum() + p.prod(), torch.tensor([1.0, 2.0, 3.0])))
