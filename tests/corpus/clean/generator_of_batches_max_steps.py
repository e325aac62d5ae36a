import itertools

import torch
from torch import nn


def stream(seed, batch=16):
    g = torch.Generator().manual_seed(seed)
    while True:
        x = torch.rand(batch, 2, generator=g) * 2 - 1
        yield x, (x.pow(2).sum(1, keepdim=True) < 0.5).float()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 1))
opt = torch.optim.NAdam(model.parameters(), lr=1e-2)
loss_fn = nn.BCEWithLogitsLoss()
avg = None
for step, (x, y) in enumerate(itertools.islice(stream(0), 25), 1):
    loss = loss_fn(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    avg = loss.item() if avg is None else 0.9 * avg + 0.1 * loss.item()
    if step % 10 == 0:
        model.eval()
        with torch.no_grad():
            hits = [((model(a) > 0).float() == b).float().mean() for a, b in itertools.islice(stream(99), 3)]
        model.train()
        print(step, avg, torch.stack(hits).mean().item())
