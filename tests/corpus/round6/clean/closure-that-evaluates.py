import torch

torch.manual_seed(17)
knots = torch.nn.Parameter(torch.zeros(9))
x = torch.linspace(0, 8, 200)
y = torch.sin(x) + 0.05 * torch.randn(200)
left = x.long().clamp(max=7)
opt = torch.optim.LBFGS([knots], lr=1, max_iter=10, line_search_fn="strong_wolfe")


def predict():
    frac = x - left
    return knots[left] * (1 - frac) + knots[left + 1] * frac


def closure():
    opt.zero_grad()
    loss = (predict() - y).pow(2).mean() + 1e-3 * knots.diff().pow(2).sum()
    if loss.requires_grad:
        loss.backward()
    return loss


for it in range(3):
    print(it, opt.step(closure).item())
