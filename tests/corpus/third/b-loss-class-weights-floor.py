# /// case
# title = "Integer division makes most class weights zero"
# category = "loss-wiring"
# kind = "loss-weights-zero"
# severity = "warning"
# names = ["weights", "counts", "criterion"]
# difficulty = "hard"
# symptom = "Loss looks small and falls, the model predicts the rarest class for everything; silent."
# symptom_check = "(weights == 0).sum().item() == 2 and predicted[2] > 250"
# cause = "counts.min() // counts is 0 for all classes but the rarest; samples of the other classes contribute neither loss nor gradient."
# fix = "Use true division."
# evidence = [{ url = "https://github.com/longcw/faster_rcnn_pytorch/issues/53" }, { url = "https://github.com/pytorch/pytorch/issues/50528" }]
# ///
"""Imbalanced fault classification from vibration features."""
import torch
from torch import nn


class FaultData:
    def __init__(self, per_class, n_feat=6, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.y = torch.repeat_interleave(torch.arange(len(per_class)), torch.tensor(per_class))
        centres = 1.5 * torch.randn(len(per_class), n_feat, generator=g)
        self.x = centres[self.y] + 0.7 * torch.randn(len(self.y), n_feat, generator=g)
        self.g = g

    def batches(self, size):
        for idx in torch.randperm(len(self.y), generator=self.g).split(size):
            yield self.x[idx], self.y[idx]


def class_weights(labels):
    counts = torch.bincount(labels)
    weights = counts.min() // counts  #- here
#+     weights = counts.min() / counts
    return weights.float()  #! here


torch.manual_seed(0)
data = FaultData([200, 90, 30])
weights = class_weights(data.y)  #! here
criterion = nn.CrossEntropyLoss(weight=weights)  #! here
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(6):
    for x, y in data.batches(64):
        loss = criterion(model(x), y)  #! also
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    predicted = torch.bincount(model(data.x).argmax(1), minlength=3)
print("loss", loss.item(), "predicted classes", predicted.tolist())
