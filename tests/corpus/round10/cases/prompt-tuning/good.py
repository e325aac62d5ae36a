from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class PromptConfig:
    vocab: int = 64
    dim: int = 32
    prompt_length: int = 6
    classes: int = 4
    dtype: torch.dtype = torch.bfloat16


class Backbone(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.layer = nn.TransformerEncoderLayer(cfg.dim, 4, 64, dropout=0.0, batch_first=True, norm_first=True)

    def forward(self, ids, prefix):
        embedded = torch.cat([prefix.expand(len(ids), -1, -1), self.tokens(ids)], 1)
        return self.layer(embedded)


class PromptedClassifier(nn.Module):
    def __init__(self, backbone, cfg):
        super().__init__()
        self.backbone = backbone.to(cfg.dtype).requires_grad_(False)
        self.prompt = nn.Parameter((0.5 * torch.randn(cfg.prompt_length, cfg.dim)).to(cfg.dtype))
        self.verbalizer = nn.Linear(cfg.dim, cfg.classes, dtype=cfg.dtype)

    def forward(self, ids):
        hidden = self.backbone(ids, self.prompt)
        return self.verbalizer(hidden[:, :self.prompt.size(0)].mean(1)).float()


def examples(cfg, count):
    labels = torch.randint(cfg.classes, (count,))
    ids = labels[:, None] * 16 + torch.randint(16, (count, 8))
    return ids, labels


torch.manual_seed(31)
cfg = PromptConfig()
model = PromptedClassifier(Backbone(cfg), cfg)
trainable = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=0.0)
losses = []
for step in range(40):
    ids, labels = examples(cfg, 32)
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1], model.prompt.float().norm().item())
