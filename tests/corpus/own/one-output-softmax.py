# /// case
# category = "training"
# kind = "single-class-softmax"
# severity = "warning"
# names = ["net", "softmax"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Softmax(dim=1))  #- here
#+ net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for x in torch.randn(4, 10, 4):
    y = (x[:, :1] > 0).float()
    loss = nn.functional.binary_cross_entropy(net(x), y)  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
