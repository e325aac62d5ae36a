# /// case
# title = "Inputs and labels are permuted apart"
# category = "data"
# kind = "data-label-misalignment"
# kinds_also_ok = ["labels-shuffled"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["randperm"]
# symptom = "the loss stays at ln 2"
# symptom_check = "loss.item() > 0.5 and right < 0.9"
# cause = "each array has a permutation of its own"
# fix = "one permutation for all"
# ///
import torch
import torch.nn as nn


class ArrayLoader:
    def __init__(self, *arrays, batch_size=16, shuffle=True):
        self.arrays, self.batch_size, self.shuffle = arrays, batch_size, shuffle

    def __len__(self):
        return -(-len(self.arrays[0]) // self.batch_size)

    def __iter__(self):
        arrays = self.arrays
        if self.shuffle:
            arrays = [a[torch.randperm(len(a))] for a in arrays]  #- here
#+             order = torch.randperm(len(arrays[0]))
#+             arrays = [a[order] for a in arrays]
        yield from zip(*(a.split(self.batch_size) for a in arrays))  #! also


torch.manual_seed(65)
x = torch.randn(320, 3)
y = (x.sum(1) > 0).long()
train, test = ArrayLoader(x[:256], y[:256]), ArrayLoader(x[256:], y[256:], shuffle=False)
net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(8):
    for xb, yb in train:
        loss = nn.functional.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
with torch.no_grad():
    right = sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in test) / 64
print(loss.item(), right)
