import torch

torch.manual_seed(0)
X = torch.cat([torch.randn(30, 2) - 1, torch.randn(30, 2) + 1])
y = torch.cat([torch.zeros(30), torch.ones(30)])
w = torch.zeros(2, requires_grad=True)
b = torch.zeros((), requires_grad=True)
rate = 0.5
for epoch in range(8):
    p = torch.sigmoid(X @ w + b)
    loss = -(y * p.log() + (1 - y) * (1 - p).log()).mean()
    loss.backward()
    with torch.no_grad():
        w -= rate * w.grad
        b -= rate * b.grad
        w.grad.zero_()
        b.grad = None
print(w.tolist(), b.item(), loss.item())
