import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Housing(Dataset):
    def __init__(self, n=100):
        g = torch.Generator().manual_seed(0)
        self.x = torch.randn(n, 6, generator=g)
        self.y = (self.x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 0.0, 3.0]) + 0.1 * torch.randn(n, generator=g)).unsqueeze(1)
        self.y[::17] += 20

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


torch.manual_seed(0)
ds = Housing()
train_ds, val_ds = random_split(ds, [80, 20])
train_dl, val_dl = DataLoader(train_ds, 16, shuffle=True), DataLoader(val_ds, 20)
model = nn.Linear(6, 1)
loss_func = nn.HuberLoss(delta=1.0)
opt = torch.optim.SGD(model.parameters(), lr=0.1)


def loss_batch(xb, yb, opt=None):
    loss = loss_func(model(xb), yb)
    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), len(xb)


for epoch in range(5):
    model.train()
    for xb, yb in train_dl:
        loss_batch(xb, yb, opt)
    model.eval()
    with torch.no_grad():
        losses, nums = zip(*[loss_batch(xb, yb) for xb, yb in val_dl])
    print(epoch, sum(a * b for a, b in zip(losses, nums)) / sum(nums))
