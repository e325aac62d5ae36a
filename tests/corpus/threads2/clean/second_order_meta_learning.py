import torch
import torch.nn.functional as F

torch.manual_seed(15)
weights = [torch.randn(16, 1).requires_grad_(), torch.zeros(16, requires_grad=True),
           (0.2 * torch.randn(1, 16)).requires_grad_(), torch.zeros(1, requires_grad=True)]
meta_opt = torch.optim.Adam(weights, lr=1e-2)


def forward(x, w):
    return F.linear(torch.tanh(F.linear(x, w[0], w[1])), w[2], w[3])


def adapt(x, y, w, steps=2, lr=0.05):
    for _ in range(steps):
        grads = torch.autograd.grad(F.mse_loss(forward(x, w), y), w, create_graph=True)
        w = [p - lr * g for p, g in zip(w, grads)]
    return w


for it in range(5):
    meta_loss = 0.0
    for task in range(3):
        phase, x = 3 * torch.rand(1), torch.rand(20, 1) * 4 - 2
        y = torch.sin(x + phase)
        meta_loss = meta_loss + F.mse_loss(forward(x[10:], adapt(x[:10], y[:10], weights)), y[10:])
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
print(meta_loss.item())
