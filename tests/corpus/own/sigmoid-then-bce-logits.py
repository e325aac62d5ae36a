# /// case
# category = "training"
# kind = "double-sigmoid"
# severity = "warning"
# names = ["Sigmoid", "score"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1), nn.Sigmoid())  #- here
#+ net = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
criterion = nn.BCEWithLogitsLoss()
for x in torch.randn(4, 12, 5):
    score = net(x).squeeze(1)  #! also
    loss = criterion(score, (x.sum(1) > 0).float())  #! also
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
