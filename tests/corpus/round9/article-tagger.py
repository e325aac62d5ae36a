# /// case
# title = "The F1 term of a multi-label loss is computed from thresholded predictions"
# category = "graph-break"
# kind = "thresholded-prediction-in-loss"
# kinds_also_ok = ["non-differentiable-op", "hard-threshold-breaks-graph", "comparison-in-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["predicted", "macro_f1_loss", "f1_term"]
# symptom = "the F1 term is a constant for autograd: it changes the loss that is printed and no gradient"
# symptom_check = "not f1_term.requires_grad"
# cause = "The comparison has no gradient, so nothing flows from the F1 term into the logits."
# fix = "compute the F1 from the probabilities (soft F1)"
# ///
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 80
    width: int = 24
    tags: int = 5
    f1_weight: float = 0.5
    lr: float = 3e-3
    epochs: int = 4
    batch: int = 32


class TagClassifier(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.embed = nn.EmbeddingBag(cfg.vocab, cfg.width, mode="mean")
        self.body = nn.Sequential(nn.Linear(cfg.width, 32), nn.GELU(), nn.Dropout(0.1))
        self.head = nn.Linear(32, cfg.tags)

    def forward(self, tokens):
        return self.head(self.body(self.embed(tokens)))


def macro_f1_loss(logits, target, eps=1e-7):
    probs = torch.sigmoid(logits)
    predicted = (probs > 0.5).float()  #- here
#+     predicted = probs
    overlap = (predicted * target).sum(0)  #! also
    f1 = 2 * overlap / (predicted.sum(0) + target.sum(0) + eps)
    return 1 - f1.mean()


def make_articles(cfg: Config, count=128, length=12):
    tokens = torch.randint(0, cfg.vocab, (count, length))
    tags = torch.stack([(tokens % cfg.tags == t).sum(1) >= 3 for t in range(cfg.tags)], 1).float()
    return tokens, tags


torch.manual_seed(11)
cfg = Config()
tokens, tags = make_articles(cfg)
model = TagClassifier(cfg)
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.01)
for epoch in range(cfg.epochs):
    model.train()
    for rows in torch.randperm(len(tokens)).split(cfg.batch):
        logits = model(tokens[rows])
        bce = F.binary_cross_entropy_with_logits(logits, tags[rows])
        f1_term = macro_f1_loss(logits, tags[rows])  #! also
        loss = bce + cfg.f1_weight * f1_term  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} bce {bce.item():.3f} f1 {1 - f1_term.item():.3f}")
