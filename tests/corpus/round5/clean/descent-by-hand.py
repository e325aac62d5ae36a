import torch

torch.manual_seed(44)
w1 = (torch.randn(6, 16) * 0.3).requires_grad_(True)
w2 = (torch.randn(16, 1) * 0.3).requires_grad_(True)
momentum = {id(w): torch.zeros_like(w) for w in (w1, w2)}
for step in range(40):
    x = torch.randn(64, 6)
    y = x[:, :1] * x[:, 1:2]
    loss = (torch.relu(x @ w1) @ w2 - y).square().mean()
    loss.backward()
    with torch.no_grad():
        for w in (w1, w2):
            v = momentum[id(w)]
            v.mul_(0.9).add_(w.grad)
            w -= 0.01 * v
            w.grad = None
print(loss.item())
