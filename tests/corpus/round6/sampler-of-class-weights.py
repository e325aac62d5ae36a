# /// case
# title = "A sampler gets one weight per class"
# category = "data"
# kind = "sampler-weights-per-class"
# kinds_also_ok = ["data-never-seen"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["WeightedRandomSampler", "weight"]
# symptom = "only the first three examples are ever drawn"
# symptom_check = "len(seen) <= 3"
# cause = "the sampler takes one weight per example"
# fix = "weights[y]"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(66)
n_classes = 3
y = torch.cat([torch.zeros(180), torch.ones(40), torch.full((20,), 2.0)]).long()
y = y[torch.randperm(240)]
x = torch.randn(240, 6) + nn.functional.one_hot(y, 6)
count = torch.bincount(y, minlength=n_classes)
weight = 1.0 / count  #- here
#+ weight = (1.0 / count)[y]
sampler = WeightedRandomSampler(weight, num_samples=len(y), replacement=True)  #! also
loader = DataLoader(TensorDataset(torch.arange(240), x, y), batch_size=24, sampler=sampler)
model = nn.Linear(6, n_classes)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
seen = set()
for epoch in range(3):
    for index, xb, yb in loader:
        seen.update(index.tolist())
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
