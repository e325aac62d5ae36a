import torch
import torch.nn as nn

torch.manual_seed(14)
n_micro = 4
model = nn.Sequential(nn.Embedding(30, 12), nn.Flatten(), nn.Linear(12 * 6, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 30, (64, 6))
target = (ids.sum(1) > 87).long()


def micro_batches():
    order = torch.randperm(len(ids))
    return order.chunk(16)


seen_rows = 0
for epoch in range(2):
    for step, rows in enumerate(micro_batches()):
        optimizer.zero_grad()
        out = model(ids[rows])
        loss = nn.functional.cross_entropy(out, target[rows]) / n_micro
        loss.backward()
        if (step + 1) % n_micro == 0:
            touched = (model[0].weight.grad.abs().sum(1) > 0).sum().item()
            seen_rows = max(seen_rows, touched)
            optimizer.step()
    print(epoch, loss.item() * n_micro, seen_rows)
used = ids[rows].unique().numel()
