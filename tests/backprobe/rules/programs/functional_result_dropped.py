"""BP761 functional-result-dropped."""

HEAD = """
import torch
from torch import nn
from torch.func import functional_call, grad_and_value, grad

net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
x = torch.randn(20, 3)
y = x.sum(1, keepdim=True)

def loss_of(weights, inputs, targets):
    return (functional_call(net, weights, (inputs,)) - targets).pow(2).mean()

weights = {name: value.detach().clone() for name, value in net.named_parameters()}
"""

PROGRAMS = {
    "the module answers in the end": HEAD
    + """
def fit(weights, steps):
    step = grad_and_value(loss_of)
    for _ in range(steps):
        gradients, loss = step(weights, x, y)
        weights = {name: value - 0.1 * gradients[name] for name, value in weights.items()}
    return weights, loss

weights, last = fit(weights, 5)
with torch.no_grad():
    error = (net(x) - y).pow(2).mean()  # <- BP761
print(last, error)
""",
    "loaded before it answers": HEAD
    + """
for _ in range(5):
    gradients = grad(loss_of)(weights, x, y)
    weights = {name: value - 0.1 * gradients[name] for name, value in weights.items()}
net.load_state_dict(weights)
with torch.no_grad():
    print((net(x) - y).pow(2).mean())
""",
    "the new weights answer": HEAD
    + """
for _ in range(5):
    gradients = grad(loss_of)(weights, x, y)
    weights = {name: value - 0.1 * gradients[name] for name, value in weights.items()}
with torch.no_grad():
    print((functional_call(net, weights, (x,)) - y).pow(2).mean())
""",
    "before and after are compared": HEAD
    + """
for _ in range(5):
    gradients = grad(loss_of)(weights, x, y)
    weights = {name: value - 0.1 * gradients[name] for name, value in weights.items()}
with torch.no_grad():
    before = (net(x) - y).pow(2).mean()
    after = (functional_call(net, weights, (x,)) - y).pow(2).mean()
print(before, after)
""",
}
