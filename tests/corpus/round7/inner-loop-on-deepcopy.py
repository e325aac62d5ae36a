# /// case
# title = "The query loss of the adapted copy never reaches the meta-learner"
# category = "higher-order"
# kind = "meta-gradient-lost"
# kinds_also_ok = ["parameter-without-gradient", "graph-break", "optimizer-without-gradients"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["adapt", "meta", "fast"]
# symptom = "the meta-parameters have no gradient, the outer step does nothing"
# symptom_check = "all(p.grad is None for p in meta.parameters())"
# cause = "deepcopy and an inner optimizer sever the copy from the meta-parameters"
# fix = "functional inner steps with a graph"
# ///
import copy

import torch
import torch.nn as nn
from torch.func import functional_call


def sine_task():
    amplitude, phase = torch.rand(1) * 4 + 1, torch.rand(1) * 3.14
    x = torch.rand(20, 1) * 10 - 5
    y = amplitude * torch.sin(x + phase)
    return (x[:10], y[:10]), (x[10:], y[10:])


def adapt(meta, support, steps=2, lr=0.01):
    x, y = support
    fast = copy.deepcopy(meta)  #- here
    inner = torch.optim.SGD(fast.parameters(), lr=lr)  #- also
#+     fast = dict(meta.named_parameters())
    for _ in range(steps):
        loss = (fast(x) - y).square().mean()  #-
        inner.zero_grad()  #-
        loss.backward()  #-
        inner.step()  #- also
    return fast  #-
#+         loss = (functional_call(meta, fast, (x,)) - y).square().mean()
#+         grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
#+         fast = {k: p - lr * g for (k, p), g in zip(fast.items(), grads)}
#+     return lambda inputs: functional_call(meta, fast, (inputs,))


torch.manual_seed(27)
meta = nn.Sequential(nn.Linear(1, 20), nn.ReLU(), nn.Linear(20, 1))
outer = torch.optim.Adam(meta.parameters(), lr=1e-3)
for iteration in range(8):
    query_losses = []
    for _ in range(3):
        support, (xq, yq) = sine_task()
        learner = adapt(meta, support)
        query_losses.append((learner(xq) - yq).square().mean())
    outer.zero_grad()
    torch.stack(query_losses).mean().backward()  #! also
    outer.step()  #! also
    print(iteration, sum(q.item() for q in query_losses) / 3)
