import torch
import torch.nn.functional as F
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, count=4, k=2):
        super().__init__()
        self.k = k
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)) for _ in range(count)
        )

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probs = self.gate(flat).softmax(-1)
        weight, chosen = probs.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = (chosen == i).nonzero(as_tuple=True)
            if token.numel() == 0:
                continue
            out.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        load = F.one_hot(chosen, probs.shape[-1]).float().sum(1).mean(0)
        self.balance = probs.shape[-1] * (load * probs.mean(0)).sum()
        return out.view_as(x)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, 2, batch_first=True)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.moe = Experts(width)

    def forward(self, x):
        h = self.n1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        return x + self.moe(self.n2(x))


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(30, 8), Layer(8), Layer(8), nn.Linear(8, 30))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
for _ in range(5):
    ids = torch.randint(0, 30, (4, 10))
    logits = model(ids[:, :-1])
    task = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    loss = task + 0.01 * sum(m.balance for m in model.modules() if isinstance(m, Experts))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
