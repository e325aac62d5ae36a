# /// case
# title = "The inner step of a meta-learner writes through .data"
# category = "leaf"
# kind = "data-assignment"
# kinds_also_ok = ["copy-cuts-graph", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["param", "data", "adapted"]
# symptom = "the meta-model has no gradient and never trains"
# symptom_check = "all(p.grad is None for p in meta.model.parameters())"
# cause = "the adapted copy is updated through .data, outside of the graph"
# fix = "make the adapted weights by an expression and use them in functional_call"
# evidence = [
#     { url = "https://github.com/KanishJebaMathewM/Truxify/issues/13118", title = "MAML inner-loop `param.data -=` detaches the graph — the meta-model never trains" },
#     { url = "https://github.com/RobinLu1209/ST-GFSL/issues/3", title = "关于maml.py中第149行" },
# ]
# ///
import copy

import torch
import torch.nn as nn
from torch.func import functional_call


class MetaLearner:
    def __init__(self, model, inner_lr=0.05, outer_lr=1e-3):
        self.model, self.inner_lr = model, inner_lr
        self.criterion = nn.MSELoss()
        self.meta_optimizer = torch.optim.Adam(model.parameters(), lr=outer_lr)

    def inner_update(self, x, y):
        adapted = copy.deepcopy(self.model)  #- also
        loss = self.criterion(adapted(x), y)  #-
        grads = torch.autograd.grad(loss, adapted.parameters(), create_graph=True)  #-
        for param, grad in zip(adapted.parameters(), grads):  #-
            param.data -= self.inner_lr * grad.data  #- here
        return adapted  #-
#+         names, params = zip(*self.model.named_parameters())
#+         loss = self.criterion(self.model(x), y)
#+         grads = torch.autograd.grad(loss, params, create_graph=True)
#+         fast = {n: p - self.inner_lr * g for n, p, g in zip(names, params, grads)}
#+         return lambda query: functional_call(self.model, fast, (query,))

    def meta_train_step(self, tasks):
        meta_loss = 0.0
        for support_x, support_y, query_x, query_y in tasks:
            adapted = self.inner_update(support_x, support_y)
            meta_loss = meta_loss + self.criterion(adapted(query_x), query_y)
        meta_loss = meta_loss / len(tasks)
        self.meta_optimizer.zero_grad()
        meta_loss.backward()
        self.meta_optimizer.step()
        return meta_loss.item()


def sine_task(k=8):
    amplitude, phase = torch.rand(1) * 4 + 0.5, torch.rand(1) * 3
    x = torch.rand(2 * k, 1) * 10 - 5
    y = amplitude * torch.sin(x + phase)
    return x[:k], y[:k], x[k:], y[k:]


torch.manual_seed(33)
meta = MetaLearner(nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1)))
for it in range(6):
    print(it, meta.meta_train_step([sine_task() for _ in range(3)]))
