# /// case
# title = "The updated weights require no gradient"
# category = "leaf"
# kind = "leaf-rebound"
# kinds_also_ok = ["leaf-lost", "requires-grad-lost"]
# severity = "error"
# names = ["theta"]
# symptom = "the second update has no gradient of theta"
# raises = "TypeError"
# raises_message = "NoneType"
# cause = "theta is a new tensor, made under no_grad"
# fix = "subtract in place"
# ///
import torch

torch.manual_seed(13)
X = torch.randn(120, 3)
true = torch.tensor([1.5, -2.0, 0.7])
labels = (X @ true + 0.3 > 0).float()

theta = torch.zeros(3, requires_grad=True)
offset = torch.zeros(1, requires_grad=True)


def log_loss(z, t):
    return (torch.nn.functional.softplus(z) - t * z).mean()


rate, epochs = 0.5, 25
history = []
for epoch in range(epochs):
    z = X @ theta + offset
    cost = log_loss(z, labels)
    cost.backward()  #! also
    with torch.no_grad():  #! also
        theta = theta - rate * theta.grad  #- here
#+         theta -= rate * theta.grad
        offset -= rate * offset.grad
    theta.grad = None
    offset.grad = None
    history.append(cost.item())
print(history[0], history[-1], theta)
