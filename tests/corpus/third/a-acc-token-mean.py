# /// case
# title = "Micro-batch token means are averaged although the token counts differ"
# category = "accumulation"
# kind = "accumulation-not-normalised"
# severity = "warning"
# names = ["micro", "accumulate", "loss", "parts"]
# difficulty = "hard"
# symptom = "the accumulated gradient differs from the full-batch gradient; short sequences get too much weight"
# symptom_check = "(lambda a, b: max(float((x - y).abs().max()) for x, y in zip(a, b)) > 1e-5)((model.zero_grad(), accumulate(model, probe, 4), [p.grad.clone() for p in model.parameters()])[2], (model.zero_grad(), accumulate(model, probe, len(probe)), [p.grad.clone() for p in model.parameters()])[2])"
# cause = "cross_entropy averages over the non-padding tokens of its micro-batch, and the means are divided by the number of parts"
# fix = "sum the token losses and divide by the number of tokens of the whole batch"
# evidence = [{ url = "https://unsloth.ai/blog/gradient" }, { url = "https://github.com/unslothai/unsloth-zoo/issues/6" }, { url = "https://huggingface.co/blog/gradient_accumulation" }]
# ///
"""Causal language model on padded sequences of very different lengths."""
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, VOCAB = 0, 20


class LM(nn.Module):
    def __init__(self, dim=24, heads=2, longest=24):
        super().__init__()
        self.tok, self.pos = nn.Embedding(VOCAB, dim), nn.Embedding(longest, dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)
        self.heads = heads

    def forward(self, ids):
        h = self.tok(ids) + self.pos(torch.arange(ids.size(1)))
        q, k, v = (z.unflatten(2, (self.heads, -1)).transpose(1, 2) for z in self.qkv(self.norm(h)).chunk(3, dim=2))
        h = h + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return self.head(h + self.mlp(h))


def accumulate(model, ids, micro):
    parts = ids.split(micro)  #! also
#+     tokens = (ids[:, 1:] != PAD).sum()
    value = 0.0
    for part in parts:
        logits = model(part[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), ignore_index=PAD)  #- here
        loss = loss / len(parts)  #- here
#+         loss = F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten(), ignore_index=PAD, reduction="sum")
#+         loss = loss / tokens
        loss.backward()  #! also
        value += loss.item()
    return value


def batch(n, longest=18):
    lengths = torch.where(torch.rand(n) < 0.5, torch.randint(3, 5, (n,)), torch.full((n,), longest))
    start = torch.randint(1, VOCAB, (n, 1))
    ids = (start + torch.arange(longest) * 2 - 1) % (VOCAB - 1) + 1
    return ids.masked_fill(torch.arange(longest)[None] >= lengths[:, None], PAD)


torch.manual_seed(0)
model = LM()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(12):
    opt.zero_grad()
    loss = accumulate(model, batch(16), micro=4)
    opt.step()
probe = batch(16)
print(f"{loss:.3f}")
