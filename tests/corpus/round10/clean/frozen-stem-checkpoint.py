import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint


class ConformerLite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Conv1d(width, width, 5, padding=2, groups=4)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.mix(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + 0.5 * self.feed(x)


class SpeechClassifier(nn.Module):
    def __init__(self, bins=16, width=32, depth=3, classes=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(bins, width), nn.GELU())
        self.blocks = nn.ModuleList([ConformerLite(width) for _ in range(depth)])
        self.classes = nn.Linear(width, classes)
        for parameter in self.stem.parameters():
            parameter.requires_grad = False

    def forward(self, mel):
        with torch.no_grad():
            hidden = self.stem(mel)
        hidden.requires_grad_()
        for block in self.blocks:
            hidden = checkpoint(block, hidden, use_reentrant=True, preserve_rng_state=True)
        return self.classes(hidden.mean(1))


def clips(count):
    labels = torch.randint(0, 4, (count,))
    carrier = torch.linspace(0, 6, 20)[:, None] * (1 + labels[:, None, None])
    return carrier.sin() * torch.linspace(0.5, 1.5, 16) + 0.5 * torch.randn(count, 20, 16), labels


torch.manual_seed(36)
model = SpeechClassifier().train()
active = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.Adam(active, lr=2e-3)
for step in range(40):
    mel, labels = clips(16)
    loss = F.cross_entropy(model(mel), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, round(loss.item(), 4))
