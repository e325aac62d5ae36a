# /// case
# title = "Inner gradients of Meta-SGD are taken without create_graph"
# category = "higher-order"
# kind = "missing-create-graph"
# severity = "warning"
# names = ["inner_grads", "grad", "grads", "adapt"]
# difficulty = "hard"
# symptom = "training works, but the second-order part of the meta-gradient is missing"
# symptom_check = "not any(g.requires_grad for g in inner_grads)"
# cause = "autograd.grad without create_graph returns constants; the dependence of the inner gradient on the initial weights is lost"
# fix = "create_graph=True"
# evidence = [{ url = "https://github.com/dragen1860/MAML-Pytorch/issues/63" }, { url = "https://github.com/uvm-neurobotics-lab/ANML/issues/3" }, { url = "https://github.com/kjaved0/mrcl/issues/15" }]
# ///
"""Meta-SGD: the initial weights and one learning rate per weight are meta-learned (exact meta-gradient)."""
import torch

torch.manual_seed(0)
shapes = {"w1": (1, 24), "b1": (24,), "w2": (24, 1), "b2": (1,)}
init = {k: (torch.randn(s) * 0.4).requires_grad_(True) for k, s in shapes.items()}
rates = {k: torch.full(s, 0.02).requires_grad_(True) for k, s in shapes.items()}
meta_opt = torch.optim.Adam([*init.values(), *rates.values()], lr=3e-3)


def model(p, x):
    return torch.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def mse(p, x, y):
    return (model(p, x) - y).pow(2).mean()


def task():
    k, c = torch.rand(2) * 2 - 1
    xs, xq = torch.rand(8, 1) * 4 - 2, torch.rand(16, 1) * 4 - 2
    f = lambda x: k * x.pow(2) + c * x
    return xs, f(xs), xq, f(xq)


def adapt(x, y):
    loss = mse(init, x, y)
    grads = torch.autograd.grad(loss, list(init.values()))  #- here
#+     grads = torch.autograd.grad(loss, list(init.values()), create_graph=True)
    fast = {k: init[k] - rates[k] * g for k, g in zip(init, grads)}  #! also
    return fast, grads


for it in range(25):
    meta_loss = 0.0
    for _ in range(4):
        xs, ys, xq, yq = task()
        fast, inner_grads = adapt(xs, ys)  #! also
        meta_loss = meta_loss + mse(fast, xq, yq) / 4
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
    if it % 10 == 0:
        size = max(g.abs().max().item() for g in inner_grads)
        print(f"{it:3d} meta loss {meta_loss.item():.4f} largest inner gradient {size:.3f}")
