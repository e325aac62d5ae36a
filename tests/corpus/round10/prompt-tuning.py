# /// case
# title = "The cast after nn.Parameter makes the soft prompt a plain tensor that is not a leaf"
# category = "leaf"
# kind = "parameter-cast-to-non-leaf"
# kinds_also_ok = ["non-leaf-parameter", "unregistered-parameter", "parameter-not-in-optimizer", "converted-after-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["prompt", "Parameter", "to"]
# symptom = "the prompt never changes and is not among the parameters"
# symptom_check = "not model.prompt.is_leaf and not any(n == 'prompt' for n, _ in model.named_parameters())"
# cause = "to() to another dtype returns a new tensor with a grad_fn, so the module registers nothing."
# fix = "cast inside nn.Parameter(...)"
# ///
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
        self.prompt = nn.Parameter(0.5 * torch.randn(cfg.prompt_length, cfg.dim)).to(cfg.dtype)  #- here
#+         self.prompt = nn.Parameter((0.5 * torch.randn(cfg.prompt_length, cfg.dim)).to(cfg.dtype))
        self.verbalizer = nn.Linear(cfg.dim, cfg.classes, dtype=cfg.dtype)

    def forward(self, ids):
        hidden = self.backbone(ids, self.prompt)  #! also
        return self.verbalizer(hidden[:, :self.prompt.size(0)].mean(1)).float()


def examples(cfg, count):
    labels = torch.randint(cfg.classes, (count,))
    ids = labels[:, None] * 16 + torch.randint(16, (count, 8))
    return ids, labels


torch.manual_seed(31)
cfg = PromptConfig()
model = PromptedClassifier(Backbone(cfg), cfg)
trainable = [p for p in model.parameters() if p.requires_grad]  #! also
optimizer = torch.optim.AdamW(trainable, lr=1e-2, weight_decay=0.0)  #! also
losses = []
for step in range(40):
    ids, labels = examples(cfg, 32)
    loss = F.cross_entropy(model(ids), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1], model.prompt.float().norm().item())
