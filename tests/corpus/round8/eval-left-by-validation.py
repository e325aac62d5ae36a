# /// case
# title = "Validation puts the network into eval mode, and nothing puts it back"
# category = "mode"
# kind = "eval-mode-in-training"
# kinds_also_ok = ["missing-train-call", "batchnorm-frozen-after-validation"]
# severity = "warning"
# names = ["validate", "eval", "train"]
# symptom = "batch norm has counted the first epoch's batches only"
# symptom_check = "int(net[1].num_batches_tracked) < epochs * 4"
# cause = "validate() calls net.eval() and the epochs after the first train in eval mode."
# fix = "net.train() at the start of each epoch"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

epochs = 5


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.MaxPool2d(2), nn.Dropout(0.2), nn.Flatten(), nn.Linear(72, 3),
    )


@torch.no_grad()
def validate(net, images, labels):
    net.eval()  #! here
    return F.cross_entropy(net(images), labels).item()  #! here


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.waited = patience, float("inf"), 0

    def __call__(self, value):
        if value < self.best:
            self.best, self.waited = value, 0
        else:
            self.waited += 1
        return self.waited > self.patience


torch.manual_seed(111)
images = torch.randn(88, 1, 6, 6)
labels = images[:, 0, 2:4, 2:4].sum((1, 2)).div(2).round().clamp(-1, 1).long() + 1
train_rows, valid_rows = torch.arange(64), torch.arange(64, 88)
net = build()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
stop = EarlyStopping(patience=3)
net.train()  #- here
for epoch in range(epochs):  #! here
#+     net.train()
    for rows in train_rows[torch.randperm(64)].split(16):
        loss = F.cross_entropy(net(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    value = validate(net, images[valid_rows], labels[valid_rows])
    print(epoch, loss.item(), value)
    if stop(value):
        break
