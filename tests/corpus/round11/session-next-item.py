# /// case
# title = "The position table is a view of a Parameter and so is not registered"
# category = "leaf"
# kind = "non-leaf-parameter"
# kinds_also_ok = ["parameter-not-registered", "parameter-turned-non-leaf", "untrained-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["position", "Parameter", "unsqueeze"]
# symptom = "the positions stay random, they are neither trained nor saved"
# symptom_check = "'position' not in dict(model.named_parameters())"
# cause = "unsqueeze() returns a plain non-leaf tensor, which the module does not register."
# fix = "unsqueeze inside nn.Parameter(...)"
# ///
import torch
from torch import nn
import torch.nn.functional as F


class SessionModel(nn.Module):
    """Self-attention over the last items of a session, scored against the item table."""

    def __init__(self, items, length, dim=24, heads=3):
        super().__init__()
        self.items = nn.Embedding(items, dim)
        nn.init.normal_(self.items.weight, std=0.05)
        self.position = nn.Parameter(torch.randn(length, dim) * 0.02).unsqueeze(0)  #- here
#+         self.position = nn.Parameter((torch.randn(length, dim) * 0.02).unsqueeze(0))
        self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.feed = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.register_buffer("causal", causal, persistent=False)

    def forward(self, session):
        hidden = self.items(session) + self.position  #! also
        mixed, _ = self.attention(hidden, hidden, hidden, attn_mask=self.causal, need_weights=False)
        hidden = self.norm(hidden + mixed)
        return hidden + self.feed(hidden)

    def score(self, hidden, candidates):
        return (hidden.unsqueeze(-2) * self.items(candidates)).sum(-1)


class SessionLog:
    """The next item repeats the one seen two steps earlier, shifted by one, most of the time."""

    def __init__(self, items, length):
        self.items, self.length = items, length

    def sessions(self, count):
        columns = [torch.randint(0, self.items, (count,)) for _ in range(2)]
        while len(columns) <= self.length:
            repeated = (columns[-2] + 1) % self.items
            random = torch.randint(0, self.items, (count,))
            columns.append(torch.where(torch.rand(count) < 0.85, repeated, random))
        return torch.stack(columns, dim=1)


class SampledSoftmax:
    def __init__(self, items, negatives):
        self.items, self.negatives = items, negatives

    def __call__(self, model, sessions):
        history, following = sessions[:, :-1], sessions[:, 1:]
        drawn = torch.randint(0, self.items, (*following.shape, self.negatives))
        candidates = torch.cat([following.unsqueeze(-1), drawn], dim=-1)
        logits = model.score(model(history), candidates)
        duplicate = drawn.eq(following.unsqueeze(-1))
        logits = torch.cat([logits[..., :1], logits[..., 1:].masked_fill(duplicate, -1e4)], dim=-1)
        return F.cross_entropy(logits.flatten(0, 1), torch.zeros(following.numel(), dtype=torch.long))


@torch.no_grad()
def hit_rate(model, sessions, k=5):
    model.eval()
    last = model(sessions[:, :-1])[:, -1]
    top = (last @ model.items.weight.t()).topk(k, dim=1).indices
    model.train()
    return top.eq(sessions[:, -1:]).any(1).float().mean().item()


torch.manual_seed(25)
log = SessionLog(items=50, length=10)
model = SessionModel(items=50, length=10)
objective = SampledSoftmax(items=50, negatives=10)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  #! also
sessions, unseen = log.sessions(1024), log.sessions(300)
for epoch in range(8):
    values = []
    for batch in sessions[torch.randperm(1024)].split(64):
        loss = objective(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    print(f"{epoch} loss {sum(values) / len(values):.4f} hit@5 {hit_rate(model, unseen):.3f}")
