# /// case
# title = "The bias gradient is never cleared"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["accumulated-gradient", "stale-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_", "b"]
# symptom = "the bias swings about its value"
# symptom_check = "abs(b.item() - 2) > 0.1 and max(curve[30:]) > 0.5"
# cause = "its gradients add up over all steps"
# fix = "clear it too"
# evidence = [
#     { url = "https://github.com/greebear/pytorch-learning/issues/1", title = "this linear_regression demo cannot work well in pytorch 1.0.1" },
# ]
# ///
import torch

torch.manual_seed(4)
x = torch.linspace(-1, 1, 40).unsqueeze(1)
y = 3 * x + 2 + 0.05 * torch.randn(40, 1)
w = torch.zeros(1, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
lr = 0.1


def loss_of():
    return ((x @ w + b - y) ** 2).mean()


curve = []
for step in range(60):
    loss = loss_of()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad  #! also
        w.grad.zero_()  #! here
#+         b.grad.zero_()
    curve.append(loss.item())
    if step % 20 == 0:
        print(step, curve[-1], w.item(), b.item())
