# /// case
# category = "mode"
# kind = "frozen-batch-norm-moves"
# severity = "warning"
# names = ["backbone"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.ReLU())
for p in backbone.parameters():
    p.requires_grad_(False)  #! also
#+ backbone.eval()
head = nn.Linear(4, 2)
opt = torch.optim.Adam(head.parameters(), lr=1e-2)
for _ in range(4):
    x = torch.randn(16, 1, 12) * 3 + 2
    features = backbone(x).mean(-1)  #! here
    loss = nn.functional.cross_entropy(head(features), torch.randint(0, 2, (16,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print(backbone[1].running_mean)
