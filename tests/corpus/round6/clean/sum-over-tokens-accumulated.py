import torch
import torch.nn as nn

torch.manual_seed(3)
model = nn.Sequential(nn.Embedding(20, 12, padding_idx=0), nn.Linear(12, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
ids = torch.randint(1, 20, (40, 9))
for row, n in zip(ids, torch.randint(3, 9, (40,))):
    row[int(n):] = 0
for epoch in range(3):
    for window in torch.randperm(40).split(20):
        tokens = (ids[window][:, 1:] != 0).sum()
        optimizer.zero_grad()
        for micro in window.split(5):
            logits = model(ids[micro][:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[micro][:, 1:].flatten(), ignore_index=0, reduction="sum")
            loss.backward()
        for p in model.parameters():
            p.grad /= tokens
        optimizer.step()
    print(epoch, loss.item())
