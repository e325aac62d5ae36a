# /// case
# title = "Hypernetwork output is written into the target with vector_to_parameters"
# category = "graph-break"
# kind = "graph-break-data"
# kinds_also_ok = ["graph-cut-by-parameter-wrap", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["vector_to_parameters", "hyper", "theta", "target"]
# difficulty = "hard"
# symptom = "all gradients of the hypernetwork are None; the loss stays where it was"
# symptom_check = "all(p.grad is None for p in hyper.parameters())"
# cause = "vector_to_parameters assigns param.data; the target's weights are leaves, nothing leads back to the hypernetwork"
# fix = "run the target with functional_call on slices of the generated vector"
# evidence = [{ url = "https://github.com/KanishJebaMathewM/Truxify/issues/13118" }, { url = "https://github.com/huggingface/diffusers/issues/3256" }]
# ///
"""Hypernetwork that emits the weights of a small regressor from a task descriptor."""
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters  #-
#+ from torch.func import functional_call
#+ from torch.nn.utils import parameters_to_vector


class Hyper(nn.Module):
    def __init__(self, descriptor, size, hidden=48):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(descriptor, hidden), nn.ReLU(), nn.Linear(hidden, size))
        nn.init.normal_(self.net[-1].weight, std=0.02)

    def forward(self, z):
        return self.net(z)


def make_target():
    return nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))


#+ def unpack(theta, module):
#+     parts, at = {}, 0
#+     for name, p in module.named_parameters():
#+         parts[name] = theta[at:at + p.numel()].view_as(p)
#+         at += p.numel()
#+     return parts


def sample_task():
    amp, phase = torch.empty(1).uniform_(0.5, 2.0), torch.empty(1).uniform_(0, 3.0)
    x = torch.empty(20, 1).uniform_(-3, 3)
    return torch.cat([amp, phase]), x, amp * torch.sin(x + phase)


torch.manual_seed(0)
target = make_target()
base = parameters_to_vector(target.parameters()).detach()
hyper = Hyper(2, base.numel())
opt = torch.optim.Adam(hyper.parameters(), lr=2e-3)

for episode in range(30):
    loss = 0.0
    for _ in range(4):
        z, x, y = sample_task()
        theta = base + hyper(z)  #! also
        vector_to_parameters(theta, target.parameters())  #- here
        pred = target(x)  #- also
#+         pred = functional_call(target, unpack(theta, target), (x,))
        loss = loss + (pred - y).pow(2).mean() / 4
    opt.zero_grad()
    loss.backward()
    opt.step()
print("loss", loss.item())
