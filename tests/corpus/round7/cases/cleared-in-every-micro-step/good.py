import argparse

import torch
import torch.nn as nn


def parse(argv=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--grad-accum", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--updates", type=int, default=5)
    return parser.parse_args(list(argv))


args = parse()
torch.manual_seed(11)
model = nn.Linear(6, 3)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
norms = []
stream = [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(args.grad_accum * args.updates)]

for i, (features, labels) in enumerate(stream, start=1):
    loss = loss_fn(model(features), labels) / args.grad_accum
    loss.backward()
    if i % args.grad_accum == 0:
        norms.append(model.weight.grad.norm().item())
        optimizer.step()
        optimizer.zero_grad()
        print("update", i // args.grad_accum, loss.item() * args.grad_accum)
