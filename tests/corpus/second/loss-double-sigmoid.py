# /// case
# title = "Sigmoid output fed to BCEWithLogitsLoss"
# category = "loss-wiring"
# kind = "double-sigmoid"
# severity = "warning"
# names = ["prob"]
# difficulty = "easy"
# symptom = "silent: effective probabilities limited to (0.5, 0.73)"
# symptom_check = "bool((fraud(tx) >= 0).all() and (fraud(tx) <= 1).all())"
# cause = "BCEWithLogitsLoss applies the sigmoid itself"
# fix = "pass logits (or BCELoss)"
# evidence = [
#     { url = "https://github.com/itakurah/focal-loss-pytorch/pull/5" },
#     { url = "https://github.com/cvg/glue-factory/issues/89" },
#     { url = "https://github.com/lopuhin/kaggle-imet-2019/issues/3" },
#     { url = "https://github.com/avBuffer/UNet3plus_pth/issues/23" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(18)
fraud = nn.Sequential(
    nn.Linear(8, 16),
    nn.ReLU(),
    nn.Linear(16, 1),
    nn.Sigmoid(),  #- here
)
opt = torch.optim.AdamW(fraud.parameters(), lr=1e-2)
criterion = nn.BCEWithLogitsLoss()
tx = torch.randn(70, 8)
flag = (tx[:, :1] > 0.3).float()
for epoch in range(20):
    prob = fraud(tx)
    loss = criterion(prob, flag)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
