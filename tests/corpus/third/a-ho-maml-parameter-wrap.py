# /// case
# title = "Adapted weights are wrapped in nn.Parameter in the inner loop"
# category = "higher-order"
# kind = "graph-cut-by-parameter-wrap"
# kinds_also_ok = ["graph-break-detach", "graph-break-data", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["fast", "Parameter", "adapt"]
# difficulty = "medium"
# symptom = "the meta-parameters have no gradient, the outer optimizer does nothing"
# symptom_check = "all(p.grad is None for p in learner.parameters())"
# cause = "nn.Parameter(tensor) makes a new leaf; the query loss is not connected to the initial weights"
# fix = "keep the updated weights as plain tensors"
# evidence = [{ url = "https://github.com/KanishJebaMathewM/Truxify/issues/13118" }, { url = "https://github.com/oscarknagg/few-shot/issues/9" }]
# ///
"""MAML on sinusoid regression, second order, weights passed through functional_call."""
import argparse
from collections import OrderedDict

import torch
from torch import nn
from torch.func import functional_call
import torch.nn.functional as F


def parse_args(argv=None):
    ap = argparse.ArgumentParser()
    ap.add_argument("--inner-lr", type=float, default=0.02)
    ap.add_argument("--inner-steps", type=int, default=2)
    ap.add_argument("--meta-lr", type=float, default=2e-3)
    ap.add_argument("--tasks", type=int, default=4)
    ap.add_argument("--iterations", type=int, default=12)
    return ap.parse_args(argv)


class Learner(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.out = nn.Linear(hidden, 1)

    def forward(self, x):
        return self.out(self.body(x))


class SineTasks:
    def __init__(self, shots):
        self.shots = shots

    def draw(self):
        amp, phase = torch.empty(2, 1).uniform_(0.2, 3.0)

        def points(n):
            x = torch.empty(n, 1).uniform_(-4, 4)
            return x, amp * torch.sin(x + phase)

        return points(self.shots), points(2 * self.shots)


def adapt(learner, support, args):
    fast = OrderedDict(learner.named_parameters())
    x, y = support
    for _ in range(args.inner_steps):
        loss = F.mse_loss(functional_call(learner, fast, (x,)), y)
        grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
        fast = OrderedDict(  #! here
            (name, nn.Parameter(w - args.inner_lr * g)) for (name, w), g in zip(fast.items(), grads)  #- here
#+             (name, w - args.inner_lr * g) for (name, w), g in zip(fast.items(), grads)
        )
    return fast  #! also


def meta_step(learner, opt, tasks, args):
    opt.zero_grad()
    total = 0.0
    for _ in range(args.tasks):
        support, (x, y) = tasks.draw()
        fast = adapt(learner, support, args)  #! also
        loss = F.mse_loss(functional_call(learner, fast, (x,)), y) / args.tasks
        loss.backward()  #! also
        total += loss.item()
    opt.step()
    return total


torch.manual_seed(0)
args = parse_args([])
learner = Learner()
opt = torch.optim.Adam(learner.parameters(), lr=args.meta_lr)
curve = [meta_step(learner, opt, SineTasks(10), args) for _ in range(args.iterations)]
print(f"query loss {curve[0]:.3f} -> {curve[-1]:.3f}")
