# /// case
# title = "The backward of every step makes a graph of the gradients, and nothing differentiates them"
# category = "retention"
# kind = "create-graph-not-needed"
# kinds_also_ok = ["gradient-holds-graph", "reference-cycle", "memory-growth"]
# severity = "warning"
# names = ["create_graph", "backward"]
# symptom = "the parameters' .grad have a history"
# symptom_check = "all(p.grad.grad_fn is not None for p in model.parameters())"
# cause = "backward(create_graph=True) leaves gradients that refer to the graph, and it to the parameters, a cycle that is not freed with the step."
# fix = "backward() without create_graph"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Curvature:
    """Keeps a running estimate of the squared gradient's size for a report."""

    def __init__(self, decay=0.9):
        self.decay, self.value = decay, 0.0

    def observe(self, parameters):
        with torch.no_grad():
            size = sum(p.grad.square().sum() for p in parameters).item()
        self.value = self.decay * self.value + (1 - self.decay) * size


class Recommender(nn.Module):
    def __init__(self, users, items, width=6):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, user, item):
        match = (self.users(user) * self.items(item)).sum(1)
        return match + self.user_bias(user).squeeze(1) + self.item_bias(item).squeeze(1)


torch.manual_seed(48)
users, items = torch.randint(0, 20, (300,)), torch.randint(0, 30, (300,))
stars = 3 + 0.5 * torch.randn(20)[users] + torch.randn(30)[items]
model = Recommender(20, 30)
curvature = Curvature()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
for step in range(20):
    rows = torch.randint(0, 300, (64,))
    error = F.huber_loss(model(users[rows], items[rows]), stars[rows])
    penalty = 1e-3 * sum(p.square().sum() for p in model.parameters())
    optimizer.zero_grad()
    (error + penalty).backward(create_graph=True)  #- here
#+     (error + penalty).backward()
    curvature.observe(model.parameters())
    optimizer.step()
    if step % 5 == 0:
        print(step, error.item(), curvature.value)
