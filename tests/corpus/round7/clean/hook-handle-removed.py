import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def masked_gradients(weight, keep):
    handle = weight.register_hook(lambda grad: grad * keep)
    try:
        yield
    finally:
        handle.remove()


torch.manual_seed(128)
old = F.normalize(torch.randn(6, 8), dim=1)
table = nn.Embedding(10, 8)
with torch.no_grad():
    table.weight[:6] = old
head = nn.Linear(8, 3)
optimizer = torch.optim.SGD([*table.parameters(), *head.parameters()], lr=0.2)
keep = torch.zeros(10, 1)
keep[6:] = 1
for epoch in range(4):
    with masked_gradients(table.weight, keep):
        for _ in range(4):
            words = torch.randint(0, 10, (20, 4))
            loss = F.cross_entropy(head(table(words).mean(1)), words.sum(1) % 3)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(epoch, loss.item(), torch.equal(table.weight[:6], old))
