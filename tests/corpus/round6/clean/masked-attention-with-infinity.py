import torch
import torch.nn as nn
import torch.nn.functional as F


class Attend(nn.Module):
    def __init__(self, dim=16, heads=4):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, keep):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        causal = torch.tril(torch.ones(n, n, dtype=torch.bool))
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=causal & keep[:, None, None, :])
        return self.out(h.transpose(1, 2).reshape(b, n, d))


torch.manual_seed(25)
embed, layer, read = nn.Embedding(12, 16), Attend(), nn.Linear(16, 12)
params = [p for m in (embed, layer, read) for p in m.parameters()]
opt = torch.optim.AdamW(params, lr=3e-3)
for it in range(10):
    ids = torch.randint(1, 12, (8, 10))
    length = torch.randint(4, 11, (8, 1))
    keep = torch.arange(10) < length
    logits = read(layer(embed(ids), keep))
    target = ids.roll(-1, 1).masked_fill(torch.arange(10) >= length - 1, -100)
    loss = F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=-100)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
