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
        b -= lr * b.grad
        w.grad.zero_()
        b.grad.zero_()
    curve.append(loss.item())
    if step % 20 == 0:
        print(step, curve[-1], w.item(), b.item())
