# /// case
# title = "The last micro-batches of an epoch make no full group, and no step is made for them"
# category = "accumulation"
# kind = "incomplete-accumulation-window"
# kinds_also_ok = ["accumulation-tail-dropped", "missing-step-at-epoch-end"]
# severity = "warning"
# names = ["accumulate", "step", "loader"]
# symptom = "gradients of the last micro-batches are left over"
# symptom_check = "any(p.grad is not None for p in model.parameters())"
# cause = "10 micro-batches do not divide by 4, and the step is made at multiples of 4 only, so that the last two leak into the next epoch."
# fix = "step at the last micro-batch too"
# ///
import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def parse():
    parser = argparse.ArgumentParser(description="small image classifier with gradient accumulation")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args([])


def window(index, total, accumulate):
    """Number of micro-batches in the group that `index` belongs to."""
    start = index - index % accumulate
    return min(accumulate, total - start)


def train(model, loader, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        seen = 0.0
        for index, (image, label) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(image), label)
            (loss / window(index, len(loader), args.accumulate)).backward()
            seen += loss.item()
            if (index + 1) % args.accumulate == 0:  #- here
#+             if (index + 1) % args.accumulate == 0 or index + 1 == len(loader):
                optimizer.step()  #! also
                optimizer.zero_grad()
        print(epoch, seen / len(loader))  #! also


args = parse()
torch.manual_seed(8080)
images = torch.randn(80, 1, 6, 6)
labels = images.mean((1, 2, 3)).gt(0).long()
model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(96, 2))
train(model, DataLoader(TensorDataset(images, labels), args.micro_batch, shuffle=True), args)
