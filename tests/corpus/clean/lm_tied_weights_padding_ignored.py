import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
PAD, V = 0, 20


class TinyGPT(nn.Module):
    def __init__(self, d=16, ctx=12):
        super().__init__()
        self.tok = nn.Embedding(V, d, padding_idx=PAD)
        self.pos = nn.Embedding(ctx, d)
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.ln1, self.ln2, self.lnf = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.head = nn.Linear(d, V, bias=False)
        self.head.weight = self.tok.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, 0.0, 0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        x = self.tok(idx) + self.pos(torch.arange(T))
        q, k, v = self.qkv(self.ln1(x)).view(B, T, 3, 2, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(B, T, -1))
        x = x + self.mlp(self.ln2(x))
        logits = self.head(self.lnf(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, V), targets.reshape(-1), ignore_index=PAD)
        return logits, loss


def batch():
    rows = torch.zeros(6, 11, dtype=torch.long)
    for r in rows:
        n = int(torch.randint(5, 12, ()))
        r[:n] = (torch.arange(n) * 3 + int(torch.randint(1, 10, ()))) % (V - 1) + 1
    return rows[:, :-1], rows[:, 1:]


model = TinyGPT()
decay = [p for n, p in model.named_parameters() if p.dim() >= 2]
nodecay = [p for n, p in model.named_parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": nodecay, "weight_decay": 0.0}], lr=3e-3, betas=(0.9, 0.95))
for it in range(10):
    x, y = batch()
    _, loss = model(x, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    print(it, round(loss.item(), 3), round(norm.item(), 3))
model.eval()
ctx = torch.tensor([[4]])
with torch.no_grad():
    for _ in range(5):
        probs = model(ctx)[0][:, -1].softmax(-1)
        ctx = torch.cat([ctx, torch.multinomial(probs, 1)], 1)
print(ctx.tolist())
