# /// case
# title = "The meter of an epoch adds up loss tensors"
# category = "retention"
# kind = "graph-kept-by-running-total"
# kinds_also_ok = ["memory-growth", "loss-accumulated-without-item"]
# severity = "warning"
# names = ["Meter", "update", "item"]
# symptom = "the running sum is the end of a graph that grows with each batch"
# symptom_check = 'torch.is_tensor(meters["loss"].sum) and meters["loss"].sum.requires_grad'
# cause = "update() gets the loss with its graph and adds it to the sum, so that all graphs of the run hang on it."
# fix = "pass loss.item()"
# ///
import torch
import torch.nn as nn


class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n=1):
        self.sum = self.sum + value * n  #! here
        self.count += n

    @property
    def mean(self):
        return float(self.sum) / max(self.count, 1)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return torch.relu(x + self.body(x))


torch.manual_seed(25)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), ResidualBlock(8), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, nesterov=True)
images = torch.randn(64, 3, 8, 8)
labels = images[:, 0].mean((1, 2)).argsort().argsort() // 16
meters = {"loss": Meter(), "accuracy": Meter()}
for epoch in range(4):
    for rows in torch.randperm(64).split(16):
        logits = net(images[rows])
        loss = criterion(logits, labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits = (logits.argmax(1) == labels[rows]).float().mean()
        meters["loss"].update(loss, len(rows))  #- here
#+         meters["loss"].update(loss.item(), len(rows))
        meters["accuracy"].update(hits.item(), len(rows))
    print(epoch, meters["loss"].mean, meters["accuracy"].mean)
