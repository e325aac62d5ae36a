import torch
from torch import nn


def compute_loss(model, x, y):
    out = model(x)
    fit = nn.functional.mse_loss(out, y)
    decay = 1e-3 * sum(p.pow(2).sum() for p in model.parameters())
    return fit + decay, {"fit": fit.item(), "decay": decay.item()}


def main():
    torch.manual_seed(35)
    model = nn.Linear(6, 2)
    opt = torch.optim.Adam(model.parameters())
    for _ in range(6):
        opt.zero_grad()
        loss, log = compute_loss(model, torch.randn(8, 6), torch.randn(8, 2))
        loss.backward()
        opt.step()
    print(log)


main()
