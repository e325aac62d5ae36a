# /// case
# category = "training"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["loss"]
# ///
#-
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Prices(Dataset):
    def __init__(self, n):
        gen = torch.Generator().manual_seed(1)
        self.rows = torch.randn(n, 4, generator=gen)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return {"features": self.rows[at], "price": self.rows[at].sum()}


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for record in DataLoader(Prices(40), batch_size=10):
    predicted = net(record["features"])
    error = predicted - record["price"]  #- here
#+     error = predicted.squeeze(-1) - record["price"]
    loss = error.abs().mean()  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
