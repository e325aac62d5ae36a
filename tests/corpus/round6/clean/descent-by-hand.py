import torch

torch.manual_seed(31)
x = torch.randn(100, 2)
y = (x[:, 0] - 2 * x[:, 1] > 0.5).float()
w = torch.zeros(2, requires_grad=True)
b = torch.zeros((), requires_grad=True)
speed = [torch.zeros_like(w), torch.zeros_like(b)]
for step in range(80):
    z = x @ w + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    loss.backward()
    with torch.no_grad():
        for p, v in zip((w, b), speed):
            v.mul_(0.9).add_(p.grad)
            p -= 0.1 * v
            p.grad = None
print(loss.item(), w, b)
