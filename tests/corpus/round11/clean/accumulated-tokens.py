import torch
from torch import nn
import torch.nn.functional as F

PAD = -100


def reversed_sequences(n, vocab=10):
    lengths = torch.randint(3, 9, (n,))
    src = torch.randint(1, vocab, (n, 8))
    tgt = torch.full((n, 8), PAD)
    for i, k in enumerate(lengths.tolist()):
        tgt[i, :k] = src[i, :k].flip(0)
        src[i, k:] = 0
    return src, tgt


class Reverser(nn.Module):
    def __init__(self, vocab=10, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=0)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.query = nn.Parameter(torch.randn(8, dim) * 0.1)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True, kdim=2 * dim, vdim=2 * dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, src):
        memory, _ = self.rnn(self.embed(src))
        length = (src > 0).sum(1)
        where = (length[:, None] - 1 - torch.arange(8)).clamp(min=0)
        query = self.query[where]
        mixed, _ = self.attn(query, memory, memory, key_padding_mask=src.eq(0), need_weights=False)
        return self.out(mixed + query)


def grouped(batches, k):
    group = []
    for b in batches:
        group.append(b)
        if len(group) == k:
            yield group
            group = []
    if group:
        yield group


def train_epoch(model, optimizer, src, tgt, micro=16, accumulate=4):
    model.train()
    seen, total = 0, 0.0
    for group in grouped(torch.randperm(len(src)).split(micro), accumulate):
        tokens = sum((tgt[idx] != PAD).sum().item() for idx in group)
        for idx in group:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                logits = model(src[idx])
            loss = F.cross_entropy(logits.float().flatten(0, 1), tgt[idx].flatten(), ignore_index=PAD, reduction="sum")
            (loss / tokens).backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        seen += tokens
    return total / seen


torch.manual_seed(55)
torch.set_num_threads(1)
src, tgt = reversed_sequences(300)
model = Reverser()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    loss = train_epoch(model, optimizer, src, tgt)
    if epoch % 2 == 0:
        print(f"epoch {epoch} loss per token {loss:.4f}")
