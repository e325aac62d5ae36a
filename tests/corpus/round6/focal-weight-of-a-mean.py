# /// case
# title = "The focal weight is taken of a mean loss"
# category = "loss"
# kind = "reduced-too-early"
# kinds_also_ok = ["wrong-reduction"]
# severity = "warning"
# names = ["ce", "reduction"]
# symptom = "all examples have the same weight"
# symptom_check = "abs(whole - parts.mean()) > 1e-3"
# cause = "cross_entropy has averaged already"
# fix = "reduction='none'"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, weight=None):
        super().__init__()
        self.gamma = gamma
        self.register_buffer("weight", weight)

    def forward(self, logits, target):
        ce = F.cross_entropy(logits, target, weight=self.weight)  #- here
#+         ce = F.cross_entropy(logits, target, weight=self.weight, reduction="none")
        pt = torch.exp(-ce)  #! also
        return ((1 - pt) ** self.gamma * ce).mean()  #! also


torch.manual_seed(45)
x = torch.randn(300, 6)
y = (x[:, 0] > 1.5).long()
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = FocalLoss()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(20):
    loss = criterion(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
with torch.no_grad():
    logits = net(x)
    whole, parts = criterion(logits, y), torch.stack([criterion(l[None], t[None]) for l, t in zip(logits, y)])
