import math
import os
import tempfile

import torch
from torch import nn
import torch.nn.functional as F


class TiedLM(nn.Module):
    def __init__(self, vocabulary, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.shared = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary, bias=False)
        self.head.weight = self.embed.weight
        nn.init.normal_(self.embed.weight, std=1 / math.sqrt(dim))

    def forward(self, ids):
        hidden = self.embed(ids) * math.sqrt(self.embed.embedding_dim)
        for _ in range(2):
            hidden = self.norm(hidden + self.shared(hidden)[0])
        return self.head(hidden)


def weight_decay_groups(model, decay):
    skipped = {id(p) for m in model.modules() if isinstance(m, nn.LayerNorm) for p in m.parameters()}
    groups = {True: [], False: []}
    for parameter in model.parameters():
        groups[parameter.ndim > 1 and id(parameter) not in skipped].append(parameter)
    return [{"params": groups[True], "weight_decay": decay}, {"params": groups[False], "weight_decay": 0.0}]


class Session:
    def __init__(self, model, total, lr=4e-3):
        self.model = model
        self.optimizer = torch.optim.AdamW(weight_decay_groups(model, 0.05), lr=lr)
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=10)
        cool = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=total - 10)
        self.scheduler = torch.optim.lr_scheduler.SequentialLR(self.optimizer, [warm, cool], milestones=[10])

    def state(self):
        return {name: getattr(self, name).state_dict() for name in ("model", "optimizer", "scheduler")}

    def load(self, state):
        for name, value in state.items():
            getattr(self, name).load_state_dict(value)

    def train(self, batches):
        for ids in batches:
            logits = self.model(ids[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.scheduler.step()
        return loss.item()


def tickets(batches, vocabulary=30, length=14):
    step = torch.randint(1, vocabulary, (vocabulary,))
    for _ in range(batches):
        ids = [torch.randint(0, vocabulary, (32,))]
        for _ in range(length):
            noise = torch.where(torch.rand(32) < 0.1, torch.randint(0, vocabulary, (32,)), 0)
            ids.append((ids[-1] + step[ids[-1]] + noise) % vocabulary)
        yield torch.stack(ids, dim=1)


torch.manual_seed(95)
batches = list(tickets(80))
first = Session(TiedLM(30), total=80)
print(f"first half {first.train(batches[:40]):.4f}")
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "session.pt")
    torch.save(first.state(), path)
    second = Session(TiedLM(30), total=80)
    second.load(torch.load(path, weights_only=True))
assert second.model.head.weight is second.model.embed.weight
print(f"second half {second.train(batches[40:]):.4f} lr {second.scheduler.get_last_lr()[0]:.5f}")
