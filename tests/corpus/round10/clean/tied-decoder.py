from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab_size: int = 44
    d_model: int = 32
    n_head: int = 4
    n_layer: int = 2
    n_ctx: int = 14
    specials: list = field(default_factory=lambda: ["<bos>", "<eos>"])


class TiedDecoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.register_buffer("causal", torch.full((cfg.n_ctx, cfg.n_ctx), float("-inf")).triu(1))
        layer = nn.TransformerEncoderLayer(cfg.d_model, cfg.n_head, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, cfg.n_layer, enable_nested_tensor=False)
        self.position = nn.Parameter(torch.zeros(cfg.n_ctx, cfg.d_model))
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size, bias=False)
        self.tie()

    def tie(self):
        nn.init.normal_(self.embed.weight, std=0.1)
        self.head.weight = self.embed.weight

    def extend(self, count):
        with torch.no_grad():
            grown = nn.Embedding(self.embed.num_embeddings + count, self.embed.embedding_dim)
            grown.weight[:self.embed.num_embeddings].copy_(self.embed.weight)
            grown.weight[self.embed.num_embeddings:] = self.embed.weight.mean(0)
        self.embed = grown
        self.head = nn.Linear(grown.embedding_dim, grown.num_embeddings, bias=False)
        self.head.weight = self.embed.weight
        return self

    def forward(self, ids):
        n = ids.size(1)
        x = self.embed(ids) + self.position[:n]
        return self.head(self.layers(x, mask=self.causal[:n, :n]))


torch.manual_seed(64)
cfg = Config()
model = TiedDecoder(cfg).extend(len(cfg.specials))
bos, eos = cfg.vocab_size, cfg.vocab_size + 1
matrices = [p for p in model.parameters() if p.ndim > 1]
vectors = [p for p in model.parameters() if p.ndim <= 1]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}], lr=3e-3)
for step in range(40):
    middle = (torch.randint(cfg.vocab_size, (16, 1)) + 3 * torch.arange(cfg.n_ctx - 1)) % cfg.vocab_size
    ids = torch.cat([torch.full((16, 1), bos), middle, torch.full((16, 1), eos)], 1)
    loss = F.cross_entropy(model(ids[:, :-1]).transpose(1, 2), ids[:, 1:])
    model.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_([*matrices, *vectors], 1.0)
    optimizer.step()
    if step % 10 == 9:
        print(step, f"{loss.item():.4f}", model.head.weight is model.embed.weight)
