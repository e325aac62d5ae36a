# /// case
# title = "The augmentation writes into the stored samples"
# category = "data"
# kind = "dataset-mutated-in-getitem"
# kinds_also_ok = ["in-place-augmentation", "input-modified-in-place"]
# severity = "warning"
# names = ["__getitem__", "add_", "mul_"]
# symptom = "the noise adds up over the epochs, the data set drifts"
# symptom_check = "not torch.equal(train_set.x, original)"
# cause = "indexing gives a view, and add_ and mul_ write to it"
# fix = "work on a copy"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Jittered(Dataset):
    def __init__(self, x, y, noise=0.2):
        self.x, self.y, self.noise = x, y, noise

    def __len__(self):
        return len(self.y)

    def __getitem__(self, index):
        sample = self.x[index]  #- here
#+         sample = self.x[index].clone()
        sample.add_(self.noise * torch.randn_like(sample))  #! also
        sample.mul_(1 + 0.1 * torch.randn(()))  #! also
        return {"signal": sample, "label": self.y[index]}


torch.manual_seed(99)
x = torch.randn(60, 7)
y = (x[:, 0] - x[:, 5] > 0).long()
original = x.clone()
train_set = Jittered(x, y)
loader = DataLoader(train_set, batch_size=12, shuffle=True)
model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    running = []
    for batch in loader:
        loss = criterion(model(batch["signal"]), batch["label"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    print(epoch, sum(running) / len(running))
