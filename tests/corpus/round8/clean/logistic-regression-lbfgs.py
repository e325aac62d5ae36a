import argparse

import torch
import torch.nn.functional as F


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ridge", type=float, default=1e-3)
    return parser.parse_args([])


def make_data(n=150, fields=6):
    x = torch.randn(n, fields)
    w = torch.randn(fields)
    return x, (torch.sigmoid(x @ w) > torch.rand(n)).float()


def fit(x, y, args):
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], lr=1, max_iter=5, line_search_fn="strong_wolfe")
    calls = []

    def closure():
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x @ weight + bias, y) + args.ridge * weight.square().sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    for _ in range(args.rounds):
        optimizer.step(closure)
    return weight.detach(), bias.detach(), calls


args = options()
torch.manual_seed(11)
x, y = make_data()
weight, bias, calls = fit(x, y, args)
print(calls[0], calls[-1], ((x @ weight + bias > 0) == y.bool()).float().mean().item())
