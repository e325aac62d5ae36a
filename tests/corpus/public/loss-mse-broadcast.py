# /// case
# title = "MSELoss between (N, 1) and (N,): broadcast to (N, N)"
# category = "loss-wiring"
# kind = "loss-shape-broadcast"
# severity = "warning"
# names = ["pred", "price"]
# difficulty = "easy"
# symptom = "UserWarning: Using a target size ... that is different to the input size"
# warns = "Using a target size"
# cause = "the prediction keeps its last dimension"
# fix = "pred.squeeze(-1)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/16045" },
#     { url = "https://github.com/pytorch/pytorch/issues/19699" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(9)
house = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
opt = torch.optim.Adam(house.parameters(), lr=1e-2)
crit = nn.MSELoss()
feats = torch.rand(32, 6)
price = feats @ torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 1.0])
for _ in range(10):
    pred = house(feats)  #- also
#+     pred = house(feats).squeeze(-1)
    loss = crit(pred, price)  #! here
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
