# /// case
# title = "Full trainer with gradient accumulation and warm-up: gradients are never cleared"
# category = "accumulation"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["self.optimizer"]
# difficulty = "hard"
# symptom = "silent: the gradient norm keeps growing over the optimizer steps"
# symptom_check = 'trainer.log["grad_norm"][-1] > 3 * trainer.log["grad_norm"][0]'
# cause = "zero_grad() was forgotten when accumulation was added"
# fix = "self.optimizer.zero_grad(set_to_none=True) after step"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/47175" },
#     { url = "https://github.com/wenet-e2e/wekws/pull/73" },
#     { url = "https://github.com/meta-pytorch/torchforge/pull/71" },
#     { url = "https://github.com/tenstorrent/tt-blacksmith/pull/711" },
# ]
# ///
"""Image classifier trainer with gradient accumulation."""
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 2
    batch: int = 16
    accumulate: int = 2
    lr: float = 1e-4
    warmup: int = 4
    seed: int = 0


class ConvBlock(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, 3, padding=1, bias=False)
        self.norm = nn.GroupNorm(2, cout)

    def forward(self, x):
        return F.silu(self.norm(self.conv(x)))


class Classifier(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.stem = ConvBlock(1, 8)
        self.body = nn.Sequential(ConvBlock(8, 8), nn.MaxPool2d(2), ConvBlock(8, 16))
        self.head = nn.Linear(16, classes)

    def forward(self, img):
        h = self.body(self.stem(img))
        return self.head(h.mean(dim=(2, 3)))


@dataclass
class Trainer:
    model: nn.Module
    cfg: Config
    log: dict = field(default_factory=lambda: {"loss": [], "grad_norm": []})

    def __post_init__(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.cfg.lr)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda s: min(1.0, (s + 1) / self.cfg.warmup)
        )

    def micro_step(self, img, target):
        logits = self.model(img)
        loss = F.cross_entropy(logits, target, label_smoothing=0.05)
        (loss / self.cfg.accumulate).backward()  #! also
        return loss.item()

    def optimizer_step(self):
        norm = torch.stack([p.grad.norm() for p in self.model.parameters()]).norm()
        self.log["grad_norm"].append(norm.item())
        self.optimizer.step()  #! here
        self.schedule.step()
#+         self.optimizer.zero_grad(set_to_none=True)

    def fit(self, loader):
        self.model.train()
        for epoch in range(self.cfg.epochs):
            total = 0.0
            for i, (img, target) in enumerate(loader, start=1):
                total += self.micro_step(img, target)
                if i % self.cfg.accumulate == 0:
                    self.optimizer_step()
            self.log["loss"].append(total / len(loader))
            print(f"epoch {epoch} loss {self.log['loss'][-1]:.4f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        hits = sum((self.model(img).argmax(1) == t).sum().item() for img, t in loader)
        return hits / len(loader.dataset)


cfg = Config()
torch.manual_seed(cfg.seed)
labels = torch.zeros(128, dtype=torch.long)
images = torch.randn(128, 1, 8, 8) + labels.view(-1, 1, 1, 1)
data = TensorDataset(images, labels)
loader = DataLoader(data, batch_size=cfg.batch, shuffle=True)
trainer = Trainer(Classifier(), cfg)
trainer.fit(loader)
print("accuracy", trainer.evaluate(loader))
