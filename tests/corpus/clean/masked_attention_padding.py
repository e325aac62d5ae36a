import torch
from torch import nn

torch.manual_seed(0)
embed, attend, out = nn.Embedding(12, 8, padding_idx=0), nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 2)
opt = torch.optim.Adam([*embed.parameters(), *attend.parameters(), *out.parameters()], lr=1e-2)
for _ in range(4):
    tokens = torch.randint(1, 12, (6, 7))
    lengths = torch.randint(2, 8, (6,))
    pad = torch.arange(7)[None] >= lengths[:, None]
    tokens = tokens.masked_fill(pad, 0)
    h = embed(tokens)
    mixed, _ = attend(h, h, h, key_padding_mask=pad, need_weights=False)
    pooled = mixed.masked_fill(pad[..., None], 0).sum(1) / lengths[:, None]
    loss = nn.functional.cross_entropy(out(pooled), tokens[:, 0] % 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
