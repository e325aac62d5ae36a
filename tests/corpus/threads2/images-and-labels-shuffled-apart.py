# /// case
# title = "Two loaders shuffle images and labels on their own"
# category = "data"
# kind = "pairs-out-of-order"
# severity = "warning"
# names = ["image_loader", "label_loader", "shuffle"]
# symptom = "images are trained with labels of others"
# symptom_check = "not any(paired)"
# cause = "each loader draws its own order"
# fix = "one order for both"
# evidence = [
#     { url = "https://github.com/mlcommons/GaNDLF/pull/870", title = "Made train batches order same as gt" },
# ]
# ///
from types import SimpleNamespace

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

params = SimpleNamespace(batch_size=8, epochs=3, learning_rate=5e-3, num_classes=2, seed=142)


def synthetic_scans(n):
    labels = torch.arange(n) % params.num_classes
    images = torch.randn(n, 1, 6, 6)
    images[labels == 1, :, 2:4, 2:4] += 2.0
    return images, labels


def build_loaders(images, labels):
    rank = torch.arange(len(images))
    image_loader = DataLoader(TensorDataset(images, rank), params.batch_size, shuffle=True)  #- here
    label_loader = DataLoader(TensorDataset(labels, rank), params.batch_size, shuffle=True)  #- here
#+     order = torch.randperm(len(images))
#+     image_loader = DataLoader(TensorDataset(images[order], rank[order]), params.batch_size)
#+     label_loader = DataLoader(TensorDataset(labels[order], rank[order]), params.batch_size)
    return image_loader, label_loader


def train_network(model, loaders, optimizer, loss_fn):
    model.train()
    paired, total = [], 0.0
    for (image, a), (label, b) in zip(*loaders):  #! also
        paired.append(torch.equal(a, b))
        output = model(image)
        loss = loss_fn(output, label)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    return total / len(paired), paired


torch.manual_seed(params.seed)
model = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(24, params.num_classes))
optimizer = torch.optim.Adam(model.parameters(), lr=params.learning_rate)
loaders = build_loaders(*synthetic_scans(40))
for epoch in range(params.epochs):
    mean_loss, paired = train_network(model, loaders, optimizer, nn.CrossEntropyLoss())
print(mean_loss, paired)
