# /// case
# title = "The gradients are cleared at every micro-batch instead of once a step"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["gradients-cleared-every-microbatch", "accumulation-has-no-effect", "zero-grad-too-often"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "every", "microbatch"]
# symptom = "every update uses only the last micro-batch, an eighth as large"
# symptom_check = "accumulator.norms[0] < 10"
# cause = "zero_grad() stands where every micro-batch begins."
# fix = "clear the gradients only when a new group begins"
# ///
from contextlib import contextmanager

import torch
from torch import nn
import torch.nn.functional as F


class WideAndDeep(nn.Module):
    def __init__(self, buckets, numeric, dim=8):
        super().__init__()
        self.wide = nn.Linear(numeric, 1)
        self.embed = nn.Embedding(buckets, dim)
        self.deep = nn.Sequential(nn.Linear(dim + numeric, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, bucket, numeric):
        deep = self.deep(torch.cat([self.embed(bucket), numeric], dim=-1))
        return (self.wide(numeric) + deep).squeeze(-1)


class Accumulator:
    """Steps the optimizer once in `every` micro-batches."""

    def __init__(self, model, optimizer, every, max_norm=50.0):
        self.model, self.optimizer = model, optimizer
        self.every, self.max_norm = every, max_norm
        self.seen = self.updates = 0
        self.norms = []

    def scale(self, loss):
        return loss / self.every

    @contextmanager
    def microbatch(self):
        self.optimizer.zero_grad()  #- here
#+         if self.seen % self.every == 0:
#+             self.optimizer.zero_grad()
        yield self
        self.seen += 1
        if self.seen % self.every == 0:
            norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)
            self.norms.append(norm.item())
            self.optimizer.step()  #! also
            self.updates += 1


def orders(count, buckets=20, numeric=5):
    bucket = torch.randint(0, buckets, (count,))
    x = torch.randn(count, numeric)
    value = 6.0 + 0.1 * bucket + x @ torch.tensor([0.6, -0.4, 0.0, 0.3, 0.1])
    return bucket, x, value + 0.2 * torch.randn(count)


def evaluate(model, data):
    with torch.inference_mode():
        bucket, x, value = data
        return F.l1_loss(model(bucket, x), value).item()


torch.manual_seed(12)
train, valid = orders(1024), orders(256)
model = WideAndDeep(20, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=5e-3)
accumulator = Accumulator(model, optimizer, every=8)
for epoch in range(6):
    model.train()
    for rows in torch.randperm(1024).split(16):
        bucket, x, value = (column[rows] for column in train)
        with accumulator.microbatch():
            loss = F.mse_loss(model(bucket, x), value)
            accumulator.scale(loss).backward()  #! also
    model.eval()
    print(f"epoch {epoch} updates {accumulator.updates} valid mae {evaluate(model, valid):.4f}")
