# /// case
# title = "Dataset sets the global seed for each item"
# category = "data"
# kind = "random-state-reset"
# severity = "warning"
# names = ["manual_seed", "__getitem__", "seed"]
# symptom = "every item gets the same augmentation and every batch the same dropout mask"
# symptom_check = "len(set(masks)) == 1"
# cause = "the seed is set in __getitem__"
# fix = "seed once"
# evidence = [
#     { url = "https://github.com/dvgodoy/PyTorchStepByStep/issues/33", title = "TransformedTensorDataset needs a seed" },
#     { url = "https://github.com/Project-MONAI/MONAI/issues/1068", title = "Random transforms generates the same random repeatly" },
# ]
# ///
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class RandomShiftNoise:
    def __init__(self, sigma=0.1, reach=2):
        self.sigma, self.reach = sigma, reach

    def __call__(self, x):
        shift = random.randint(-self.reach, self.reach)
        return torch.roll(x, shift, -1) + self.sigma * torch.randn_like(x)


class TransformedTensorDataset(Dataset):
    def __init__(self, x, y, transform=None, seed=42):
        self.x, self.y, self.transform, self.seed = x, y, transform, seed

    def __getitem__(self, index):
        x = self.x[index]
        random.seed(self.seed)  #- here
        torch.manual_seed(self.seed)  #- here
        if self.transform:
            x = self.transform(x)
        return x, self.y[index]

    def __len__(self):
        return len(self.x)


torch.manual_seed(130)
x = torch.randn(48, 10)
y = (x.sum(1, keepdim=True) > 0).float()
train_data = TransformedTensorDataset(x, y, RandomShiftNoise())
loader = DataLoader(train_data, batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Dropout(0.5), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
masks = []
model[2].register_forward_hook(lambda m, inputs, out: masks.append(torch.rand(1).item()))
for epoch in range(3):
    model.train()
    for x_batch, y_batch in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(x_batch), y_batch)  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item(), len(set(masks)))
