# /// case
# title = "The weights that a hypernetwork generates are loaded into the target with load_state_dict"
# category = "graph-break"
# kind = "generated-weights-loaded-with-load-state-dict"
# kinds_also_ok = ["load-state-dict-detaches", "hypernetwork-gets-no-gradient", "copied-weights-cut-the-graph"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["load_state_dict", "hyper", "main", "predict"]
# symptom = "the hypernetwork has no gradients and never changes"
# symptom_check = "all(p.grad is None for p in hyper.parameters())"
# cause = "load_state_dict copies values under no_grad; the gradient stays at the parameters of the target, which nobody trains."
# fix = "torch.func.functional_call(main, weights, (x,))"
# ///
import math

import torch
from torch import nn
#+ from torch.func import functional_call


class HyperNetwork(nn.Module):
    def __init__(self, context, shapes):
        super().__init__()
        self.shapes = shapes
        self.sizes = [math.prod(shape) for shape in shapes.values()]
        self.net = nn.Sequential(nn.Linear(context, 24), nn.Tanh(), nn.Linear(24, sum(self.sizes)))

    def forward(self, context):
        pieces = self.net(context).split(self.sizes)
        return {name: piece.view(shape) for piece, (name, shape) in zip(pieces, self.shapes.items())}


def sinusoid(task, points=20):
    amplitude, phase = task
    x = torch.linspace(-2, 2, points).unsqueeze(1)
    return x, amplitude * torch.sin(x + phase)


def predict(hyper, main, task, x):
    weights = hyper(task)
    main.load_state_dict(weights)  #- here
    return main(x)  #- here
#+     return functional_call(main, weights, (x,))


torch.manual_seed(3)
main = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
hyper = HyperNetwork(2, {name: p.shape for name, p in main.named_parameters()})
optimizer = torch.optim.AdamW(hyper.parameters(), lr=5e-3, weight_decay=0.0)
tasks = torch.rand(32, 2) * torch.tensor([2.0, 3.0])
curve = []
for step in range(20):
    optimizer.zero_grad()
    total = 0.0
    for task in tasks[torch.randint(32, (4,))]:
        x, y = sinusoid(task)
        loss = (predict(hyper, main, task, x) - y).square().mean() / 4
        loss.backward()  #! also
        total += loss.item()
    optimizer.step()  #! also
    curve.append(total)
print(" ".join(f"{value:.3f}" for value in curve))
