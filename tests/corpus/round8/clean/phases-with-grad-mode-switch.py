import copy

import torch
import torch.nn as nn

torch.manual_seed(27)


def make_phase(n):
    x = torch.randn(n, 3, 6, 6)
    return x, (x[:, 0].mean((1, 2)) > x[:, 1].mean((1, 2))).long()


data = {"train": make_phase(64), "val": make_phase(32)}
model = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
best_weights, best_accuracy = copy.deepcopy(model.state_dict()), 0.0

for epoch in range(4):
    for phase in ("train", "val"):
        model.train(phase == "train")
        images, labels = data[phase]
        hits = 0
        for rows in torch.randperm(len(images)).split(16):
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                logits = model(images[rows])
                loss = criterion(logits, labels[rows])
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            hits += (logits.argmax(1) == labels[rows]).sum().item()
        accuracy = hits / len(images)
        print(epoch, phase, loss.item(), accuracy)
        if phase == "val" and accuracy > best_accuracy:
            best_weights, best_accuracy = copy.deepcopy(model.state_dict()), accuracy
model.load_state_dict(best_weights)
