# /// case
# title = "Vocabulary resized after the optimizer was built"
# category = "optimizer-wiring"
# kind = "optimizer-holds-stale-parameters"
# severity = "warning"
# severity_by_writer = "error"
# names = ["tok", "head", "opt", "trainer"]
# difficulty = "medium"
# symptom = "Second phase runs and the blocks train, but embedding and output layer keep their initial values for good; no message."
# symptom_check = "not ({id(p) for p in model.parameters()} <= {id(p) for g in trainer.opt.param_groups for p in g['params']})"
# cause = "resize_vocab installs new Embedding/Linear modules; the AdamW built earlier still holds the parameters of the discarded ones, so the new ones get gradients and are never stepped."
# fix = "Rebuild the optimizer (or add the new parameters) after resize_vocab."
# evidence = [{ url = "https://github.com/facebookresearch/fairseq/issues/140" }, { url = "https://github.com/facebookresearch/mmf/issues/104" }]
# ///
"""Small character LM. A second corpus with a larger alphabet is added half way."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class LMConfig:
    vocab: int = 20
    dim: int = 32
    heads: int = 2
    layers: int = 2
    context: int = 16


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.dim)
        self.mlp = nn.Sequential(nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class TinyLM(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(cfg.context, cfg.dim))
        self.blocks = nn.ModuleList(Block(cfg) for _ in range(cfg.layers))
        self.ln = nn.LayerNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, idx):
        x = self.tok(idx) + self.pos[: idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))

    def resize_vocab(self, size):
        old_tok, old_head = self.tok, self.head
        tok, head = nn.Embedding(size, old_tok.embedding_dim), nn.Linear(old_head.in_features, size)
        with torch.no_grad():
            tok.weight[: old_tok.num_embeddings] = old_tok.weight
            head.weight[: old_head.out_features] = old_head.weight
            head.bias[: old_head.out_features] = old_head.bias
        self.tok, self.head = tok, head  #! here


class Trainer:
    def __init__(self, model, lr):
        self.model, self.lr = model, lr
        self.reset()
        self.losses = []

    def reset(self):
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=self.lr)  #! here

    def fit(self, ids, steps, context=16):
        for _ in range(steps):
            start = torch.randint(0, len(ids) - context - 1, (16,))
            batch = torch.stack([ids[s : s + context + 1] for s in start.tolist()])
            logits = self.model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()  #! also
            self.losses.append(loss.item())


torch.manual_seed(0)
cfg = LMConfig()
model = TinyLM(cfg)
trainer = Trainer(model, lr=3e-3)  #! also
corpus_a = torch.arange(400) * 3 % cfg.vocab
trainer.fit(corpus_a, 12)
corpus_b = torch.arange(400) * 5 % 28
model.resize_vocab(28)  #! here
#+ trainer.reset()
trainer.fit(corpus_b, 12)  #! here
print(f"phase 1 {trainer.losses[11]:.3f}  phase 2 {trainer.losses[-1]:.3f}")
