# /// case
# category = "leaf"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["backbone"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
for p in backbone.parameters():
    p.requires_grad == False  #- here
#+     p.requires_grad = False
classifier = nn.Linear(12, 4)
model = nn.Sequential(backbone, classifier)

opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
for epoch in range(4):
    x = torch.randn(20, 6)
    y = torch.randint(0, 4, (20,))
    loss = nn.functional.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
