import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(40, 32)
        self.pos = nn.Parameter(torch.zeros(1, 12, 32))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True) for _ in range(2)
        )
        self.head = nn.Linear(32, 40, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        x = self.tok(ids) + self.pos[:, : ids.size(1)]
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False)
        return self.head(x)


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=5)
for step in range(5):
    ids = torch.randint(0, 40, (8, 12))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    optimizer.zero_grad(set_to_none=True)
    print(step, loss.item(), norm.item())
