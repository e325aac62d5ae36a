# /// case
# title = "A column of predictions is compared with a vector of targets"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch-in-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["mse_loss", "prediction", "price"]
# symptom = "the difference is a square matrix, the model learns the mean"
# symptom_check = "(prediction - price).dim() == 2 and (prediction - price).shape[0] == (prediction - price).shape[1]"
# cause = "(N, 1) and (N,) are broadcast"
# fix = "squeeze"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(73)
area = torch.rand(72) * 2
rooms = torch.randint(1, 6, (72,)).float()
prices = 1.5 * area + 0.4 * rooms + 0.1 * torch.randn(72)
dataset = TensorDataset(torch.stack([area, rooms], dim=1), prices)
train_set, test_set = random_split(dataset, [60, 12])
loader = DataLoader(train_set, batch_size=12, shuffle=True)


class PriceModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 16)
        self.output = nn.Linear(16, 1)

    def forward(self, x):
        return self.output(F.relu(self.hidden(x)))  #- also
#+         return self.output(F.relu(self.hidden(x))).squeeze(-1)


model = PriceModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(5):
    model.train()
    epoch_loss = 0.0
    for features, price in loader:
        prediction = model(features)
        loss = F.mse_loss(prediction, price)  #! here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(price)
    print(f"epoch {epoch}: {epoch_loss / len(train_set):.4f}")
