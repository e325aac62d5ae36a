# /// case
# category = "wiring"
# kind = "missing-optimizer-step"
# severity = "warning"
# names = ["optimizer"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)
for epoch in range(4):
    x, y = torch.randn(10, 1, 8), torch.randint(0, 2, (10,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()  #! also
    optimizer.step  #- here
#+     optimizer.step()
    scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
