# /// case
# title = "Key queue of a contrastive learner is filled with tensors that have a graph"
# category = "backward-flags"
# kind = "second-backward-freed-graph"
# kinds_also_ok = ["graph-carried-across-steps", "missing-detach", "graph-retained-list"]
# severity = "error"
# names = ["queue", "keys", "enqueue"]
# difficulty = "medium"
# symptom = "RuntimeError in the second step: Trying to backward through the graph a second time"
# raises = "RuntimeError"
# raises_message = "Trying to backward through the graph a second time"
# cause = "the queue holds keys of earlier steps with their graphs, whose buffers have been freed"
# fix = "detach the keys on entry"
# evidence = [{ url = "https://github.com/KevinMusgrave/pytorch-metric-learning/issues/142" }, { url = "https://github.com/lightly-ai/lightly/pull/14" }]
# ///
"""Contrastive learning with a cross-batch memory of keys."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class KeyQueue:
    def __init__(self, size, dim):
        self.size = size
        self.keys = F.normalize(torch.randn(size, dim), dim=1)

    def enqueue(self, keys):
        self.keys = torch.cat([self.keys, keys])[-self.size:]  #- here
#+         self.keys = torch.cat([self.keys, keys.detach()])[-self.size:]


class Embedder(nn.Module):
    def __init__(self, features=12, dim=16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 48), nn.ReLU(), nn.Linear(48, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def info_nce(q, k, negatives, temperature=0.2):
    positive = (q * k).sum(dim=1, keepdim=True)
    logits = torch.cat([positive, q @ negatives.t()], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long))


def jitter(x):
    return x + 0.1 * torch.randn_like(x)


torch.manual_seed(0)
model, queue = Embedder(), KeyQueue(128, 16)
opt = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(20):
    x = torch.randn(32, 12)
    q, k = model(jitter(x)), model(jitter(x))
    loss = info_nce(q, k, queue.keys)  #! also
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
    queue.enqueue(k)  #! here
print(f"loss {loss.item():.3f}")
