# /// case
# category = "mode"
# kind = "requires-grad-forced-on-loss"
# severity = "warning"
# names = ["scores", "stacked", "torch.tensor", "losses"]
# ///
#-
import torch
from torch import nn


def make_loss(net, margin):
    def total(batch):
        scores = [net(row).squeeze() for row in batch]
        stacked = torch.tensor(scores, requires_grad=True)  #- here
#+         stacked = torch.stack(scores)
        return torch.relu(margin - stacked).mean()

    return total


torch.manual_seed(0)
net = nn.Linear(5, 1)
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
loss_of = make_loss(net, 1.0)
for _ in range(4):
    loss = loss_of(torch.randn(6, 5))
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
