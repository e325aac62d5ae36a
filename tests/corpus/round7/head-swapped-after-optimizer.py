# /// case
# title = "The head is replaced after the optimizer was made"
# category = "optimizer"
# kind = "stale-optimizer-parameters"
# kinds_also_ok = ["parameter-not-in-optimizer", "module-replaced-after-optimizer"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["fc", "optimizer", "Trainer"]
# symptom = "the new head is in no parameter group"
# symptom_check = 'not any(p is trainer.model.fc.weight for g in trainer.optimizer.param_groups for p in g["params"])'
# cause = "the optimizer holds the parameters of the old head"
# fix = "replace the head first"
# ///
import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.ReLU())
        self.fc = nn.Linear(8, classes)

    def forward(self, x):
        return self.fc(self.features(x).mean(dim=(-2, -1)))


class Trainer:
    def __init__(self, model, lr=0.05):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)  #! also
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    def fit(self, data, epochs):
        for epoch in range(epochs):
            total = 0.0
            for x, y in data:
                self.model.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            print(epoch, total / len(data))


torch.manual_seed(61)
model = ConvNet()
#+ model.fc = nn.Linear(model.fc.in_features, 3)
trainer = Trainer(model)  #! also
model.fc = nn.Linear(model.fc.in_features, 3)  #- here
data = [(torch.rand(8, 1, 10, 10), torch.randint(0, 3, (8,))) for _ in range(4)]
trainer.fit(data, epochs=3)
