# /// case
# title = "Sessions without a history are handled by a where whose other branch divides by zero"
# category = "numerics"
# kind = "nan-gradient-through-where"
# kinds_also_ok = ["division-by-zero-in-where", "where-does-not-stop-nan", "nan-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["count", "total", "torch.where"]
# symptom = "the first loss is finite, its gradients are nan, and so is everything after the first step"
# symptom_check = "bool(encoder.items.weight.isnan().any())"
# cause = "where gives the branch that is not taken a zero gradient, and zero divided by a count of zero is nan."
# fix = "divide by count.clamp(min=1)"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SessionEncoder(nn.Module):
    def __init__(self, items, width):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.cold_start = nn.Parameter(0.1 * torch.randn(width))
        nn.init.normal_(self.items.weight, std=0.3)

    def forward(self, history, lengths):
        mask = torch.arange(history.shape[1]) < lengths[:, None]
        total = (self.items(history) * mask.unsqueeze(-1)).sum(1)  #! also
        count = lengths[:, None]  #! also
        return torch.where(count > 0, total / count, self.cold_start)  #- here
#+         return torch.where(count > 0, total / count.clamp(min=1), self.cold_start)

    def score(self, session, candidates):
        return torch.einsum("bd,bcd->bc", session, self.items(candidates))


def bpr(scores):
    return -F.logsigmoid(scores[:, :1] - scores[:, 1:]).mean()


class Sessions:
    def __init__(self, items=30, longest=6, seed=4):
        self.items, self.longest = items, longest
        self.generator = torch.Generator().manual_seed(seed)

    def draw(self, high, *shape):
        return torch.randint(0, high, shape, generator=self.generator)

    def batch(self, size, negatives=3):
        history = self.draw(self.items, size, self.longest)
        lengths = self.draw(self.longest + 1, size)
        positive = (history[:, :1] + 1) % self.items
        return history, lengths, torch.cat([positive, self.draw(self.items, size, negatives)], 1)


torch.manual_seed(4)
source = Sessions()
encoder = SessionEncoder(source.items, 12)
optimizer = torch.optim.Adagrad(encoder.parameters(), lr=0.1)
losses = []
for step in range(18):
    history, lengths, candidates = source.batch(40)
    loss = bpr(encoder.score(encoder(history, lengths), candidates))  #! also
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()  #! also
    losses.append(loss.item())
print(losses[0], losses[-1])
