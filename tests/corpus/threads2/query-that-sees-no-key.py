# /// case
# title = "Causal and padding masks leave a row without keys"
# category = "numerics"
# kind = "nonfinite-gradient"
# kinds_also_ok = ["softmax-row-masked", "nonfinite-forward"]
# severity = "error"
# names = ["pad_mask", "attn_mask", "masked_fill", "softmax"]
# symptom = "NaN in the first loss or gradient"
# symptom_check = "bool(torch.isnan(model.attn.w_qkv.weight).any())"
# cause = "the padding mask hides queries instead of keys: rows of padding have -inf everywhere"
# fix = "unsqueeze(2): mask the keys"
# evidence = [
#     { url = "https://github.com/hyunwoongko/transformer/pull/40", title = "fix(model): attention pad mask" },
#     { url = "https://github.com/pytorch/pytorch/issues/41508", title = "nn.MultiheadAttention causes gradients to become NaN under some use cases" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.n_head = n_head
        self.w_qkv, self.w_concat = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        q, k, v = (t.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for t in self.w_qkv(x).chunk(3, -1))
        score = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        score = score.masked_fill(mask == 0, float("-inf"))  #! also
        return self.w_concat((torch.softmax(score, -1) @ v).transpose(1, 2).flatten(2))  #! also


class Decoder(nn.Module):
    def __init__(self, vocab=20, d_model=16, pad=0):
        super().__init__()
        self.pad = pad
        self.emb = nn.Embedding(vocab, d_model, padding_idx=pad)
        self.attn, self.norm, self.out = SelfAttention(d_model, 2), nn.LayerNorm(d_model), nn.Linear(d_model, vocab)

    def make_mask(self, ids):
        pad_mask = (ids != self.pad).unsqueeze(1).unsqueeze(3)  #- here
#+         pad_mask = (ids != self.pad).unsqueeze(1).unsqueeze(2)
        causal = torch.tril(torch.ones(ids.shape[1], ids.shape[1])).bool()
        return pad_mask & causal

    def forward(self, ids):
        x = self.emb(ids)
        return self.out(self.norm(x + self.attn(x, self.make_mask(ids))))


torch.manual_seed(92)
model = Decoder()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    ids = torch.randint(1, 20, (4, 8))
    for row, length in enumerate((8, 6, 5, 3)):
        ids[row, length:] = 0
    logits = model(ids[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
