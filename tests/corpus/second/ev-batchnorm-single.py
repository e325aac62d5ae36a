# /// case
# title = "The last batch has one sample: BatchNorm1d in training mode fails"
# category = "train-eval-mode"
# kind = "batchnorm-batch-of-one"
# severity = "error"
# names = ["loader"]
# difficulty = "easy"
# symptom = "ValueError: Expected more than 1 value per channel when training"
# raises = "ValueError"
# raises_message = "Expected more than 1 value per channel when training"
# cause = "33 samples, batch size 8, drop_last=False"
# fix = "drop_last=True"
# evidence = [
#     { url = "https://github.com/fastai/fastai/issues/1352" },
#     { url = "https://github.com/NRCan/geo-deep-learning/issues/113" },
#     { url = "https://github.com/meetps/pytorch-semseg/issues/214" },
# ]
# ///
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
ds = TensorDataset(torch.randn(33, 6), torch.randn(33, 1))
loader = DataLoader(ds, batch_size=8)  #- also
#+ loader = DataLoader(ds, batch_size=8, drop_last=True)
net = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(net.parameters())
for xb, yb in loader:
    opt.zero_grad()
    loss = nn.functional.mse_loss(net(xb), yb)  #! here
    loss.backward()
    opt.step()
print(loss.item())
