import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalLM(nn.Module):
    def __init__(self, vocab=20, dim=16, context=10):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(context, dim)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(dim, 2, 32, 0.0, batch_first=True, norm_first=True) for _ in range(2))
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, vocab, bias=False)
        self.lm_head.weight = self.tok.weight
        nn.init.normal_(self.tok.weight, std=0.02)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))

    def forward(self, ids, labels=None):
        t = ids.shape[1]
        h = self.tok(ids) + self.pos(torch.arange(t))
        for block in self.blocks:
            h = block(h, src_mask=self.mask[:t, :t])
        logits = self.lm_head(self.norm(h))
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)


torch.manual_seed(123)
model = CausalLM()
decay = [p for p in model.parameters() if p.dim() > 1]
no_decay = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3)
for step in range(12):
    ids = (torch.randint(0, 20, (8, 1)) + torch.arange(10)) % 20
    labels = ids.clone()
    labels[:, :3] = -100
    loss = model(ids, labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(loss.item())
