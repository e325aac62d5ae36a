"""BP869 targets-all-ignored."""

PROGRAMS = {
    "a masked language model whose short text has no masked word": """
import torch
from torch import nn

model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for hidden_words in (3, 2, 0, 1):
    ids = torch.randint(1, 20, (2, 6))
    labels = torch.full((2, 6), -100)
    labels[0, :hidden_words] = ids[0, :hidden_words]
    optimizer.zero_grad()
    loss = criterion(model(ids).flatten(0, 1), labels.flatten())  # <- BP869
    if torch.isfinite(loss):
        loss.backward()
        optimizer.step()
""",
    "segmentation where a tile is nothing but border": """
import torch
from torch import nn
import torch.nn.functional as F

class Trainer:
    def __init__(self):
        self.net = nn.Conv2d(1, 3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.history = []

    def loss(self, image, label):
        return F.nll_loss(self.net(image).log_softmax(1), label, ignore_index=255)  # <- BP869

    def fit(self, tiles):
        for image, label in tiles:
            loss = self.loss(image, label)
            self.history.append(loss.detach())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

tiles = [(torch.randn(1, 1, 4, 4), torch.randint(0, 3, (1, 4, 4))) for _ in range(3)]
tiles.append((torch.randn(1, 1, 4, 4), torch.full((1, 4, 4), 255)))
Trainer().fit(tiles)
""",
    "some are ignored, and a sum over none is zero": """
import torch
from torch import nn

model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for turn in range(4):
    x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
    y[: turn * 2] = -100
    total = nn.functional.cross_entropy(model(x), y, reduction="sum")
    loss = total / (y != -100).sum().clamp_min(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
}
