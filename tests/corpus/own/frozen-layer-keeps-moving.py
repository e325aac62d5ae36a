# /// case
# category = "gradient"
# kind = "frozen-with-stale-gradient"
# severity = "warning"
# names = ["encoder", "p"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(4, 8), nn.Linear(8, 1)
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
for epoch in range(6):
    if epoch == 2:
        for p in encoder.parameters():
            p.requires_grad = False  #! here
#+             p.grad = None
    x = torch.randn(16, 4)
    loss = (head(encoder(x).relu()) - x.sum(1, keepdim=True)).pow(2).mean()
    opt.zero_grad(set_to_none=False) if epoch < 2 else head.zero_grad()
    loss.backward()
    if epoch == 1:
        continue
    opt.step()  #! also
print(encoder.weight.grad is None, loss.item())
