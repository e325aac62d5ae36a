# /// case
# title = "The learnable centers of the loss are in no optimizer"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["loss-parameters-not-optimized", "gradient-accumulates"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "center_loss", "centers"]
# symptom = "the class centers never move"
# symptom_check = "center_loss.centers not in optimizer.state"
# cause = "the optimizer got the model's parameters only"
# fix = "pass the loss module's parameters too"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class CenterLoss(nn.Module):
    def __init__(self, classes, dim):
        super().__init__()
        self.centers = nn.Parameter(torch.randn(classes, dim))

    def forward(self, features, labels):
        return (features - self.centers[labels]).square().sum(dim=1).mean() / 2


class EmbeddingNet(nn.Module):
    def __init__(self, dim=4, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 20), nn.PReLU(), nn.Linear(20, dim))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        features = self.body(x)
        return features, self.head(features)


torch.manual_seed(60)
model = EmbeddingNet()
center_loss = CenterLoss(classes=3, dim=4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)  #- here
#+ optimizer = torch.optim.SGD([*model.parameters(), *center_loss.parameters()], lr=0.02, momentum=0.9)
x, y = torch.randn(60, 10), torch.randint(0, 3, (60,))
for epoch in range(3):
    for rows in torch.randperm(60).split(15):
        features, logits = model(x[rows])
        loss = F.cross_entropy(logits, y[rows]) + 0.1 * center_loss(features, y[rows])  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
