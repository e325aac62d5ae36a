# /// case
# title = "MAML inner step on detached weights: the meta-parameters get no gradient from the query loss"
# category = "higher-order"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["fast"]
# difficulty = "hard"
# symptom = "silent: meta-parameters get only the gradient of the regulariser"
# symptom_check = "not outer_part.requires_grad"
# cause = "fast weights are built from w.detach()"
# fix = "fast = w - lr * g with create_graph=True"
# evidence = [
#     { url = "https://github.com/dragen1860/MAML-Pytorch/issues/32" },
#     { url = "https://github.com/kjaved0/mrcl/issues/15" },
#     { url = "https://github.com/dragen1860/MAML-Pytorch/issues/63" },
# ]
# ///
import torch
import torch.nn.functional as F

torch.manual_seed(6)
meta = [torch.randn(1, 20).mul_(0.5).requires_grad_(), torch.zeros(20, requires_grad=True), torch.randn(20, 1).mul_(0.2).requires_grad_()]
opt = torch.optim.Adam(meta, lr=1e-3)


def net(x, w):
    return torch.tanh(x @ w[0] + w[1]) @ w[2]


for it in range(4):
    phase = torch.rand(1) * 3
    xs, xq = torch.rand(10, 1) * 6, torch.rand(10, 1) * 6
    inner = [w.detach().requires_grad_() for w in meta]  #- here
    gs = torch.autograd.grad(F.mse_loss(net(xs, inner), torch.sin(xs + phase)), inner)  #-
    fast = [w.detach() - 0.1 * g for w, g in zip(inner, gs)]  #- also
#+     gs = torch.autograd.grad(F.mse_loss(net(xs, meta), torch.sin(xs + phase)), meta, create_graph=True)
#+     fast = [w - 0.1 * g for w, g in zip(meta, gs)]
    outer_part = F.mse_loss(net(xq, fast), torch.sin(xq + phase))  #! also
    total = outer_part + 1e-4 * sum(w.pow(2).sum() for w in meta)  #! also
    opt.zero_grad()
    total.backward()
    opt.step()
print(total.item())
