import torch

torch.manual_seed(0)
x = torch.linspace(0, 4, 50)
y = 2.5 * torch.exp(-1.3 * x) + 0.5 + 0.02 * torch.randn(50)
a = torch.tensor(1.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
c = torch.tensor(0.0, requires_grad=True)
opt = torch.optim.LBFGS([a, b, c], lr=0.5, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    loss = ((a * torch.exp(-b * x) + c - y) ** 2).mean()
    loss.backward()
    return loss


for epoch in range(5):
    loss = opt.step(closure)
    print(epoch, loss.item())
print(a.item(), b.item(), c.item())
