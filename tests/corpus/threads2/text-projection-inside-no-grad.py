# /// case
# title = "Projection of the text tower stands inside no_grad with the frozen encoder"
# category = "graph-break"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["parameters-not-updated", "gradient-never-arrives", "parameter-never-used"]
# severity = "warning"
# names = ["text_proj", "encode_text", "no_grad"]
# symptom = "text_proj never gets a gradient while the image tower trains"
# symptom_check = "model.text_proj.weight.grad is None"
# cause = "the projection is inside the no_grad block of the frozen encoder"
# fix = "apply the projection after the block"
# evidence = [
#     { url = "https://github.com/edreisMD/ConVIRT-pytorch/issues/7", title = "Text encoder in 'no_grad' block?" },
# ]
# ///
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 40
    hidden: int = 16
    shared: int = 8
    temperature: float = 0.2
    lr: float = 5e-3
    steps: int = 6


class TwoTowers(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.image_net = nn.Sequential(nn.Linear(32, cfg.hidden), nn.GELU())
        self.text_net = nn.EmbeddingBag(cfg.vocab, cfg.hidden)
        self.image_proj = nn.Linear(cfg.hidden, cfg.shared)
        self.text_proj = nn.Linear(cfg.hidden, cfg.shared)

    def encode_image(self, images):
        return F.normalize(self.image_proj(self.image_net(images)), dim=-1)

    def encode_text(self, tokens):
        # the language model is kept as it was pretrained
        with torch.no_grad():  #! here
            pooled = self.text_net(tokens)
            projected = self.text_proj(pooled)  #- here
#+         projected = self.text_proj(pooled)
        return F.normalize(projected, dim=-1)

    def forward(self, images, tokens):
        scores = self.encode_image(images) @ self.encode_text(tokens).T / self.cfg.temperature
        truth = torch.arange(len(images))
        return 0.5 * (F.cross_entropy(scores, truth) + F.cross_entropy(scores.T, truth))


cfg = Config()
torch.manual_seed(0)
model = TwoTowers(cfg)
trainable = [p for n, p in model.named_parameters() if not n.startswith("text_net")]
optimizer = torch.optim.AdamW(trainable, lr=cfg.lr)
for step in range(cfg.steps):
    images = torch.randn(12, 32)
    tokens = torch.randint(0, cfg.vocab, (12, 7))
    loss = model(images, tokens)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"{loss.item():.3f}")
