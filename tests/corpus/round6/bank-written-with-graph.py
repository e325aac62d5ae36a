# /// case
# title = "Features go into the memory bank with their graph"
# category = "retention"
# kind = "backward-through-freed-graph"
# kinds_also_ok = ["graph-kept-alive", "stored-tensor-keeps-graph"]
# severity = "error"
# names = ["bank", "features"]
# symptom = "the second backward raises"
# raises = "RuntimeError"
# raises_message = "second time"
# cause = "the bank holds the graph of the step before"
# fix = "detach"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class MemoryBank:
    def __init__(self, size, dim, tau=0.2):
        self.features = F.normalize(torch.randn(size, dim), dim=1)
        self.tau = tau

    def logits(self, z):
        return z @ self.features.T / self.tau

    def update(self, index, z, momentum=0.5):
        mixed = momentum * self.features[index] + (1 - momentum) * z  #! also
        self.features[index] = F.normalize(mixed, dim=1)  #! also


torch.manual_seed(19)
data = torch.randn(90, 14)
encoder = nn.Sequential(nn.Linear(14, 32), nn.ReLU(), nn.Linear(32, 8))
bank = MemoryBank(len(data), 8)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9)
for epoch in range(2):
    for index in torch.randperm(90).split(30):
        view = data[index] + 0.1 * torch.randn(len(index), 14)
        z = F.normalize(encoder(view), dim=1)
        loss = F.cross_entropy(bank.logits(z), index)
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
        bank.update(index, z)  #- here
#+         bank.update(index, z.detach())
    print(epoch, loss.item())
