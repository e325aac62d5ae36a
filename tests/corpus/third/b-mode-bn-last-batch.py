# /// case
# title = "Last batch has one sample, batch norm in training mode"
# category = "train-eval-mode"
# kind = "batchnorm-batch-of-one"
# severity = "error"
# names = ["loader", "drop_last", "bn"]
# difficulty = "easy"
# symptom = "ValueError: Expected more than 1 value per channel when training, at the end of the first epoch."
# raises = "ValueError"
# raises_message = "Expected more than 1 value per channel"
# cause = "65 samples with batch_size=16 leave a last batch of one; BatchNorm1d cannot normalise it in training mode."
# fix = "drop_last=True."
# evidence = [{ url = "https://github.com/pytorch/pytorch/issues/7716" }, { url = "https://github.com/pytorch/pytorch/issues/1381" }]
# ///
"""Point-cloud classifier (PointNet without the transforms)."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, n, points=24, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for i in range(n):
            p = torch.randn(points, 3, generator=g)
            if i % 2:
                p = p / p.norm(dim=1, keepdim=True)
            self.items.append((p, i % 2))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class PointNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width, bias=False))
        self.bn = nn.BatchNorm1d(width)  #! also
        self.cls = nn.Linear(width, 2)

    def forward(self, p):
        g = self.point(p).amax(1)
        return self.cls(torch.relu(self.bn(g)))  #! also


torch.manual_seed(0)
data = Shapes(65)
loader = DataLoader(data, batch_size=16, shuffle=True)  #- here
#+ loader = DataLoader(data, batch_size=16, shuffle=True, drop_last=True)
net = PointNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    for points, label in loader:  #! here
        loss = nn.functional.cross_entropy(net(points), label)  #! also
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
