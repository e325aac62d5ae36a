# /// case
# category = "wiring"
# kind = "clip-without-gradient"
# severity = "warning"
# names = ["clip_grad_norm_", "model"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for x in torch.randn(4, 7, 5):
    optimizer.zero_grad()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #- here
    loss = (model(x) * 10).pow(2).mean()
    loss.backward()
#+     nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(loss.item())
