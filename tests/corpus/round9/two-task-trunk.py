# /// case
# title = "The losses of the tasks are gathered with torch.tensor before they are weighted"
# category = "graph-break"
# kind = "loss-rebuilt-with-torch-tensor"
# kinds_also_ok = ["tensor-constructor-breaks-graph", "graph-break-torch-tensor", "losses-detached"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["losses", "torch.tensor", "UncertaintyWeighting"]
# symptom = "only the log variances are trained; the network gets no gradient at all and no error is raised"
# symptom_check = "all(p.grad is None for p in net.parameters())"
# cause = "torch.tensor copies the values of the losses and forgets their graphs; log_var still makes the total differentiable."
# fix = "torch.stack(losses)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Trunk(nn.Module):
    def __init__(self, features=10, width=32):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


class MultiTaskNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.trunk = Trunk()
        self.churn = nn.Linear(32, 1)
        self.segment = nn.Linear(32, classes)
        self.spend = nn.Linear(32, 1)

    def forward(self, x):
        hidden = self.trunk(x)
        return self.churn(hidden).squeeze(1), self.segment(hidden), self.spend(hidden).squeeze(1)


class UncertaintyWeighting(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.log_var = nn.Parameter(torch.zeros(tasks))

    def forward(self, losses):
        losses = torch.tensor(losses)  #- here
#+         losses = torch.stack(losses)
        return (torch.exp(-self.log_var) * losses + self.log_var).sum()  #! also


def customers(count):
    x = torch.randn(count, 10)
    return x, {"churn": (x[:, 0] > 0).float(), "segment": x[:, 1:4].argmax(1), "spend": x[:, 4:6].sum(1)}


def task_losses(outputs, labels):
    churn, segment, spend = outputs
    return [
        F.binary_cross_entropy_with_logits(churn, labels["churn"]),
        F.cross_entropy(segment, labels["segment"]),
        F.smooth_l1_loss(spend, labels["spend"]),
    ]


torch.manual_seed(3)
net, weighting = MultiTaskNet(), UncertaintyWeighting(3)
optimizer = torch.optim.Adam([
    {"params": net.parameters(), "lr": 3e-3},
    {"params": weighting.parameters(), "lr": 1e-2},
])
for step in range(20):
    x, labels = customers(64)
    losses = task_losses(net(x), labels)
    total = weighting(losses)  #! also
    optimizer.zero_grad(set_to_none=True)
    total.backward()  #! also
    optimizer.step()
    if step % 5 == 0:
        print(step, [round(loss.item(), 3) for loss in losses], weighting.log_var.tolist())
