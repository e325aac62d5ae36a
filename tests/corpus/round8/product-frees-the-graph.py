# /// case
# title = "A Hessian-vector product is taken from the training loss's graph before its backward"
# category = "higher-order"
# kind = "backward-through-freed-graph"
# kinds_also_ok = ["missing-retain-graph", "graph-freed-early"]
# severity = "error"
# names = ["hessian_vector", "retain_graph", "grad"]
# symptom = "the backward raises"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "The second autograd.grad frees the graph that the loss's own backward needs."
# fix = "retain_graph=True in the product"
# ///
import torch
import torch.nn as nn


class Sharpness:
    """Power iteration for the largest eigenvalue of the Hessian, one product per step."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.direction = [torch.randn_like(p) for p in self.parameters]
        self.normalise()
        self.value = float("nan")

    def normalise(self):
        norm = torch.sqrt(sum(d.square().sum() for d in self.direction))
        self.direction = [d / norm for d in self.direction]

    def hessian_vector(self, loss):
        gradient = torch.autograd.grad(loss, self.parameters, create_graph=True)
        along = sum((g * d).sum() for g, d in zip(gradient, self.direction))
        return torch.autograd.grad(along, self.parameters)  #- here
#+         return torch.autograd.grad(along, self.parameters, retain_graph=True)

    def update(self, loss):
        product = self.hessian_vector(loss)
        self.value = sum((p * d).sum() for p, d in zip(product, self.direction)).item()
        self.direction = list(product)
        self.normalise()


torch.manual_seed(30)
net = nn.Sequential(nn.Linear(5, 20), nn.Tanh(), nn.Linear(20, 3))
sharpness = Sharpness(net.parameters())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(90, 5)
y = x[:, :3].argmax(1)
for epoch in range(3):
    for rows in torch.randperm(90).split(30):
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        optimizer.zero_grad()
        sharpness.update(loss)  #! here
        loss.backward()  #! here
        optimizer.step()
    print(epoch, loss.item(), sharpness.value)
