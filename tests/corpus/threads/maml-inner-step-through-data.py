# /// case
# title = "Inner step of MAML writes through .data, so no meta-gradient"
# category = "assignment-cut"
# kind = "graph-break-data"
# kinds_also_ok = ["missing-create-graph", "gradient-never-arrives", "step-without-gradient"]
# severity = "warning"
# names = ["p", "learner"]
# symptom = "the meta-parameters' grad stays None"
# symptom_check = "all(p.grad is None for p in meta.parameters())"
# cause = "the adapted copy is updated through .data"
# fix = "carry fast weights in a dict and call the module with them"
# evidence = [
#     { url = "https://github.com/KanishJebaMathewM/Truxify/issues/13118", title = "MAML inner-loop `param.data -=` detaches the graph — the meta-model never trains" },
#     { url = "https://github.com/kjaved0/mrcl/issues/15", title = "Bug fix" },
# ]
# ///
import copy

import torch
import torch.nn as nn
from torch.func import functional_call

torch.manual_seed(14)
meta = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
outer = torch.optim.Adam(meta.parameters(), lr=1e-3)
mse = nn.MSELoss()


def sample_task():
    amp, phase = torch.rand(1) * 4 + 1, torch.rand(1) * 3
    x = torch.rand(20, 1) * 10 - 5
    return x[:10], amp * torch.sin(x[:10] + phase), x[10:], amp * torch.sin(x[10:] + phase)


for it in range(4):
    outer.zero_grad()
    meta_loss = 0.0
    for _ in range(3):
        xs, ys, xq, yq = sample_task()
        learner = copy.deepcopy(meta)  #- also
        grads = torch.autograd.grad(mse(learner(xs), ys), learner.parameters(), create_graph=True)  #-
        for p, g in zip(learner.parameters(), grads):  #-
            p.data -= 0.01 * g  #- here
        meta_loss = meta_loss + mse(learner(xq), yq)  #-
#+         fast = dict(meta.named_parameters())
#+         grads = torch.autograd.grad(mse(meta(xs), ys), list(fast.values()), create_graph=True)
#+         fast = {k: p - 0.01 * g for (k, p), g in zip(fast.items(), grads)}
#+         meta_loss = meta_loss + mse(functional_call(meta, fast, (xq,)), yq)
    meta_loss.backward()  #! also
    outer.step()  #! also
print(meta_loss.item())
