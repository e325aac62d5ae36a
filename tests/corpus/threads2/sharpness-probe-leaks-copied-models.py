# /// case
# title = "Copied models with gradients of backward(create_graph=True) are never freed"
# category = "retention"
# kind = "parameter-gradient-cycle"
# kinds_also_ok = ["graph-grows-each-step", "backward-create-graph", "needless-create-graph"]
# severity = "warning"
# names = ["create_graph", "backward", "probe", "learner"]
# symptom = "the weights of each copy stay in memory"
# symptom_check = "left >= 5"
# cause = "a parameter's gradient holds the graph, which holds the parameter"
# fix = "autograd.grad() instead of backward()"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/4661", title = "backward(create_graph=True) should raise a warning for potential memory leak" },
#     { url = "https://github.com/pytorch/pytorch/issues/82528", title = 'Memory leak under "full backward hook" with "backward(create_graph=True)"' },
# ]
# ///
import copy
import gc
import weakref

import torch
import torch.nn as nn

alive = []


def sharpness(model, x, y, rounds=2):
    """Largest curvature along random directions, measured on a copy."""
    learner = copy.deepcopy(model)
    alive.append(weakref.ref(learner[0].weight))
    params = list(learner.parameters())
    loss = nn.functional.cross_entropy(learner(x), y)
    loss.backward(create_graph=True)  #- here
    grads = [p.grad for p in params]  #- also
#+     grads = torch.autograd.grad(loss, params, create_graph=True)
    best = 0.0
    for r in range(rounds):
        v = [torch.randn_like(p) for p in params]
        dot = sum((g * d).sum() for g, d in zip(grads, v))
        hv = torch.autograd.grad(dot, params, retain_graph=r + 1 < rounds)
        best = max(best, sum((h * d).sum() for h, d in zip(hv, v)).item() / sum(d.pow(2).sum() for d in v).item())
    return best


def train(model, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for epoch in range(epochs):
        x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(sharpness(model, x, y))  #! also
    return history


torch.manual_seed(44)
model = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))
print(train(model, 6))
gc.collect()
left = sum(ref() is not None for ref in alive)
