import copy

import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
data = {phase: [(torch.randn(12, 5), torch.randint(0, 2, (12,))) for _ in range(3)] for phase in ("train", "val")}
best, best_accuracy = copy.deepcopy(model.state_dict()), -1.0

for epoch in range(3):
    for phase in ["train", "val"]:
        model.train() if phase == "train" else model.eval()
        running_loss, running_corrects = 0.0, 0
        for inputs, labels in data[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = nn.functional.cross_entropy(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
            running_loss += loss.item() * inputs.size(0)
            running_corrects += torch.sum(preds == labels.data)
        if phase == "train":
            scheduler.step()
        accuracy = running_corrects.double() / 36
        if phase == "val" and accuracy > best_accuracy:
            best_accuracy, best = accuracy, copy.deepcopy(model.state_dict())
model.load_state_dict(best)
