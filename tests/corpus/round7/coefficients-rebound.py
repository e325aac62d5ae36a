# /// case
# title = "The hand-written update rebinds the leaf"
# category = "leaf"
# kind = "leaf-rebound-in-update"
# kinds_also_ok = ["grad-is-none", "parameter-rebound"]
# severity = "error"
# names = ["w", "b", "grad"]
# symptom = "in the second iteration .grad is None and the update raises"
# raises = "TypeError"
# raises_message = "unsupported operand"
# cause = "w = w - lr * w.grad makes a tensor that is no leaf"
# fix = "update in place under no_grad"
# ///
import torch

torch.manual_seed(41)
hours = torch.linspace(0.5, 6, 40)
passed = (hours + 0.8 * torch.randn(40) > 3).float()


def predict(t, w, b):
    return torch.sigmoid(w * t + b)


def cross_entropy(p, y, eps=1e-7):
    p = p.clamp(eps, 1 - eps)
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()


def accuracy(w, b):
    with torch.no_grad():
        return ((predict(hours, w, b) > 0.5).float() == passed).float().mean().item()


w = torch.randn(1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.3
for epoch in range(20):
    loss = cross_entropy(predict(hours, w, b), passed)
    loss.backward()
    w = w - lr * w.grad  #- here
    b = b - lr * b.grad  #- here
#+     with torch.no_grad():
#+         w -= lr * w.grad
#+         b -= lr * b.grad
#+         w.grad.zero_()
#+         b.grad.zero_()
    if epoch % 5 == 0:
        print(epoch, loss.item(), accuracy(w, b))
