# /// case
# title = "The weights that a hypernetwork made are wrapped in nn.Parameter"
# category = "graph-break"
# kind = "parameter-rewrap-cuts-graph"
# kinds_also_ok = ["tensor-rebuilt", "nn-parameter-in-forward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["nn.Parameter", "generate", "weight"]
# symptom = "the hypernetwork gets no gradient and does not change"
# symptom_check = "all(p.grad is None for p in hyper.parameters())"
# cause = "nn.Parameter(w) is a new leaf with the values of w, so that the loss ends there and not in the hypernetwork."
# fix = "call the layer's function with the generated tensors"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Hyper(nn.Module):
    def __init__(self, tasks, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.code = nn.Embedding(tasks, 6)
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, inputs * outputs + outputs))

    def forward(self, task):
        flat = self.body(self.code(task))
        weight, bias = flat.split([self.inputs * self.outputs, self.outputs])
        return weight.view(self.outputs, self.inputs) / self.inputs ** 0.5, bias


class Target(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = nn.Linear(inputs, outputs)

    def forward(self, x, generated):
        weight, bias = generated
        self.layer.weight = nn.Parameter(weight)  #- here
        self.layer.bias = nn.Parameter(bias)  #- here
        return self.layer(x)  #-
#+         return F.linear(x, weight, bias)


torch.manual_seed(71)
hyper, target = Hyper(4, 5, 2), Target(5, 2)
optimizer = torch.optim.Adam(hyper.parameters(), lr=1e-2)
truths = torch.randn(4, 2, 5)
for episode in range(16):
    task = torch.tensor(episode % 4)
    x = torch.randn(30, 5)
    y = x @ truths[task].T
    loss = F.mse_loss(target(x, hyper(task)), y)  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if episode % 4 == 3:
        print(episode, loss.item())
