# /// case
# title = "A column of predictions is compared with a row of targets"
# category = "loss"
# kind = "broadcast-in-loss"
# kinds_also_ok = ["shape-mismatch"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["y_pred", "y_true", "mse_loss"]
# symptom = "all pairs are compared"
# symptom_check = "pairs.numel() != len(y_batch)"
# cause = "(n, 1) against (n,) broadcasts to (n, n)"
# fix = "squeeze the predictions"
# evidence = [
#     { url = "https://github.com/LAMDA-Tabular/TALENT/pull/92", title = "Incorrect MSE Loss Calculation Due to Tensor Broadcasting" },
#     { url = "https://github.com/benedekrozemberczki/pytorch_geometric_temporal/pull/233", title = "Fix numerical bug in introduction.rst examples" },
# ]
# ///
import warnings

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.manual_seed(26)


class TabularResNet(nn.Module):
    def __init__(self, d_in, d=32, blocks=2):
        super().__init__()
        self.first = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(nn.Sequential(nn.BatchNorm1d(d), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d)) for _ in range(blocks))
        self.head = nn.Linear(d, 1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)  #- also
#+         return self.head(x).squeeze(-1)


class Method:
    def __init__(self, args):
        self.args = args
        self.model = TabularResNet(args["d_in"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args["lr"], weight_decay=1e-4)
        self.criterion = nn.MSELoss()

    def fit(self, loader):
        for epoch in range(self.args["max_epoch"]):
            for x, y in loader:
                y_pred = self.model(x)
                loss = self.criterion(y_pred, y)  #! here
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            print(epoch, loss.item())


x = torch.randn(120, 5)
y = 2 * x[:, 0] - x[:, 1] * x[:, 2]
y = (y - y.mean()) / y.std()
method = Method(dict(d_in=5, lr=3e-3, max_epoch=3))
method.fit(DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True))
y_batch = y[:40]
with torch.no_grad():
    pairs = method.model.eval()(x[:40]) - y_batch
print(tuple(pairs.shape))
