# /// case
# title = "The scores of the reward model are turned into numbers and a new leaf is made of them"
# category = "graph-break"
# kind = "tensor-rebuilt-from-values"
# kinds_also_ok = ["graph-cut-by-item", "detached-from-graph", "parameters-without-gradient", "requires-grad-on-fresh-tensor"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["score", "item", "requires_grad"]
# symptom = "the ranking loss does not move; no weight ever changes"
# symptom_check = "all(p.grad is None for p in model.parameters())"
# cause = "item() leaves the graph and torch.tensor(..., requires_grad=True) makes a new leaf, so backward ends there."
# fix = "torch.stack of the scores themselves"
# ///
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, WIDTH = 60, 24


class RewardModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.encoder = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.value = nn.Linear(WIDTH, 1, bias=False)

    def forward(self, ids):
        hidden, _ = self.encoder(self.embed(ids).unsqueeze(0))
        return self.value(hidden[0, -1]).squeeze(-1)


def sample_reply(rng, low, high):
    return torch.tensor([rng.randrange(low, high) for _ in range(rng.randrange(4, 9))])


def score(model, replies):
    return torch.tensor([model(ids).item() for ids in replies], requires_grad=True)  #- here
#+     return torch.stack([model(ids) for ids in replies])


def ranking_loss(model, pairs):
    chosen = score(model, [good for good, _ in pairs])
    rejected = score(model, [poor for _, poor in pairs])
    return -F.logsigmoid(chosen - rejected).mean(), (chosen > rejected).float().mean()  #! also


torch.manual_seed(3)
rng = random.Random(3)
pairs = [(sample_reply(rng, 0, 40), sample_reply(rng, 20, 60)) for _ in range(48)]
model = RewardModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)

curve = []
for epoch in range(5):
    rng.shuffle(pairs)
    for start in range(0, len(pairs), 16):
        loss, accuracy = ranking_loss(model, pairs[start:start + 16])
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()  #! also
        curve.append(loss.item())
    print(f"epoch {epoch} loss {loss.item():.4f} accuracy {accuracy.item():.2f}")
