import os
import tempfile

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.1)
    return model, optimizer, scheduler


def train(model, optimizer, scheduler, start, end, path):
    g = torch.Generator().manual_seed(1)
    X = torch.randn(48, 4, generator=g)
    Y = (X[:, 0] > 0).long()
    for epoch in range(start, end):
        model.train()
        for x, y in zip(X.split(16), Y.split(16)):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        scheduler.step()
        torch.save(
            {"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "loss": loss},
            path,
        )
        print(epoch, loss.item(), scheduler.get_last_lr())


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "last.pt")
    train(*build(), 0, 3, path)
    model, optimizer, scheduler = build()
    ckpt = torch.load(path, weights_only=False)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    scheduler.load_state_dict(ckpt["scheduler"])
    train(model, optimizer, scheduler, ckpt["epoch"], 6, path)
