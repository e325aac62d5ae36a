# /// case
# category = "wiring"
# kind = "missing-optimizer-step"
# severity = "warning"
# names = ["optimizer"]
# ///
#-
import torch
from torch import nn


def run_epoch(model, optimizer, batches, train=True):
    model.train(train)
    total = 0.0
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        if train:
            optimizer.zero_grad()
            loss.backward()  #! here
#+             optimizer.step()
        total += loss.item()
    return total / len(batches)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
batches = [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(4)]
for epoch in range(2):
    print(epoch, run_epoch(model, optimizer, batches))
