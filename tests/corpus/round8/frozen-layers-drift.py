# /// case
# title = "Layers that are frozen in mid-training keep gradients of zero, and the optimizer goes on moving them"
# category = "flags"
# kind = "frozen-parameter-still-stepped"
# kinds_also_ok = ["zeroed-gradient-with-momentum", "weight-decay-on-frozen"]
# severity = "warning"
# names = ["freeze", "zero_grad", "set_to_none", "weight_decay"]
# symptom = "the frozen layers change after they were frozen"
# symptom_check = "not torch.equal(net[0].weight, at_freeze)"
# cause = "zero_grad(set_to_none=False) leaves zeros in the frozen parameters' .grad, and momentum and weight decay still apply to those."
# fix = "set the gradients to None"
# ///
import argparse

import torch
from torch import nn


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", default=6, type=int)
    p.add_argument("--freeze-at", default=3, type=int)
    p.add_argument("--lr", default=0.05, type=float)
    p.add_argument("--weight-decay", default=1e-2, type=float)
    return p.parse_args([])


def freeze(layers):
    for layer in layers:
        for parameter in layer.parameters():
            parameter.requires_grad = False  #! here


def main(args):
    torch.manual_seed(501)
    net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=args.weight_decay)  #! here
    x = torch.randn(100, 10)
    y = torch.tanh(x[:, :1] * x[:, 1:2]) + 0.1 * torch.randn(100, 1)
    at_freeze = None
    for epoch in range(args.epochs):
        if epoch == args.freeze_at:
            freeze(net[:3])  #! here
            at_freeze = net[0].weight.detach().clone()
        for rows in torch.randperm(100).split(25):
            optimizer.zero_grad(set_to_none=False)  #- here
#+             optimizer.zero_grad(set_to_none=True)
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()  #! also
        print(f"epoch {epoch} loss {loss.item():.4f}")
    return net, at_freeze


net, at_freeze = main(get_args())
