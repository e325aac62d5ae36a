import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, keep):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = q @ k.transpose(-1, -2)
        scores.mul_(q.shape[-1] ** -0.5)
        scores.masked_fill_(~keep[:, None, None, :], float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


torch.manual_seed(35)
attn, head = Attention(), nn.Linear(8, 3)
opt = torch.optim.Adam([*attn.parameters(), *head.parameters()], lr=1e-2)
for _ in range(4):
    x, y = torch.randn(5, 6, 8), torch.randint(0, 3, (5,))
    keep = torch.arange(6) < torch.randint(2, 7, (5, 1))
    loss = nn.functional.cross_entropy(head(attn(x, keep)[:, 0]), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
