# /// case
# title = "The input gradient is taken by backward(create_graph=True), which fills the parameters too"
# category = "higher-order"
# kind = "backward-create-graph-double-count"
# kinds_also_ok = ["gradient-counted-twice", "create-graph-in-backward", "gradient-accumulates"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["smoothness", "create_graph"]
# symptom = "the gradient of the task loss counts twice"
# symptom_check = "model[0].weight.grad.requires_grad"
# cause = "backward accumulates into the parameters' grad, and the total loss is backpropagated again"
# fix = "autograd.grad for the input alone"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(28)
model = nn.Sequential(nn.Linear(6, 18), nn.Softplus(), nn.Linear(18, 18), nn.Softplus(), nn.Linear(18, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
inputs = torch.randn(48, 6)
labels = (inputs[:, 0] * inputs[:, 1] > 0).long()


def smoothness(slope):
    return slope.flatten(1).norm(dim=1).square().mean()


for epoch in range(4):
    for rows in torch.arange(48).split(16):
        x, y = inputs[rows].clone().requires_grad_(), labels[rows]
        optimizer.zero_grad()
        task = F.cross_entropy(model(x), y)
        task.backward(create_graph=True)  #- here
        slope = x.grad  #- also
#+         slope = torch.autograd.grad(task, x, create_graph=True)[0]
        total = task + 5.0 * smoothness(slope * len(x))
        total.backward()  #! also
        optimizer.step()
    print(epoch, task.item(), total.item())
