# /// case
# title = "The embeddings that go into the memory bank are not detached"
# category = "retention"
# kind = "memory-bank-keeps-graph"
# kinds_also_ok = ["missing-detach", "backward-through-graph-twice", "graph-kept-across-iterations"]
# severity = "error"
# names = ["bank", "push", "vectors", "key"]
# symptom = "the second backward raises: it goes through the graph of the batch before"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "The bank keeps the keys with their graph, and the negatives of the next batch lead back into it."
# fix = "bank.push(key.detach())"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 48), nn.GELU(), nn.Linear(48, width))

    def forward(self, x):
        return F.normalize(self.layers(x), dim=1)


class MemoryBank:
    def __init__(self, width, size):
        self.size = size
        self.vectors = F.normalize(torch.randn(size, width), dim=1)

    def push(self, vectors):
        self.vectors = torch.cat([vectors, self.vectors])[: self.size]  #! here


def info_nce(query, key, negatives, temperature=0.2):
    positive = (query * key).sum(1, keepdim=True)
    logits = torch.cat([positive, query @ negatives.T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


def augment(x):
    return x * (0.8 + 0.4 * torch.rand(len(x), 1)) + 0.1 * torch.randn_like(x)


def pretrain(encoder, data, bank, epochs=2, lr=1e-2):
    optimizer = torch.optim.SGD(encoder.parameters(), lr=lr, momentum=0.9)
    for epoch in range(epochs):
        for batch in data[torch.randperm(len(data))].split(32):
            query, key = encoder(augment(batch)), encoder(augment(batch))
            loss = info_nce(query, key, bank.vectors)  #! also
            optimizer.zero_grad()
            loss.backward()  #! also
            optimizer.step()
            bank.push(key)  #- here
#+             bank.push(key.detach())
        print(epoch, loss.item())


torch.manual_seed(8)
centres = torch.randn(6, 10)
data = centres[torch.randint(0, 6, (160,))] + 0.2 * torch.randn(160, 10)
encoder, bank = Encoder(10, 8), MemoryBank(8, 96)
pretrain(encoder, data, bank)
