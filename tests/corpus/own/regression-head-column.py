# /// case
# category = "training"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["prediction", "target", "mse_loss", "y", "squeeze"]
# ///
#-
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)

    def loss(self, batch):
        x, y = batch
        return (self(x) - y).abs().mean()  #- here
#+         return (self(x).squeeze(1) - y).abs().mean()


torch.manual_seed(0)
x = torch.randn(48, 4)
loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=12, shuffle=True)
model = Regressor()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(2):
    for batch in loader:
        opt.zero_grad()
        model.loss(batch).backward()
        opt.step()
