# /// case
# title = "A schedule meant for epochs is stepped with every batch"
# category = "optimizer"
# kind = "scheduler-stepped-per-batch"
# kinds_also_ok = ["scheduler-step-placement", "learning-rate-vanishes"]
# severity = "warning"
# names = ["scheduler", "step", "StepLR"]
# symptom = "the rate falls to nothing within the first epoch"
# symptom_check = 'optimizer.param_groups[0]["lr"] < 1e-6'
# cause = "scheduler.step() stands in the inner loop"
# fix = "move it to the outer loop"
# ///
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset


class Rings(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        self.label = torch.randint(0, 2, (n,), generator=g)
        angle = torch.rand(n, generator=g) * 6.2832
        radius = 1 + self.label + 0.2 * torch.randn(n, generator=g)
        self.xy = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)

    def __len__(self):
        return len(self.label)

    def __getitem__(self, i):
        return {"xy": self.xy[i], "label": self.label[i].float()}


torch.manual_seed(65)
loader = DataLoader(Rings(60, 0), batch_size=10, shuffle=True)
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
scheduler = StepLR(optimizer, step_size=2, gamma=0.1)  #! also
for epoch in range(4):
    model.train()
    for batch in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch["xy"]), batch["label"])
        loss.backward()
        optimizer.step()
        scheduler.step()  #- here
#+     scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
