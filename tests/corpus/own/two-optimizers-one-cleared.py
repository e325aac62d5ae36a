# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["slow", "head_opt"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(6, 12), nn.Linear(12, 1)
fast = torch.optim.Adam(head.parameters(), lr=1e-2)
slow = torch.optim.SGD(body.parameters(), lr=1e-3)
for _ in range(5):
    x = torch.randn(20, 6)
    out = head(torch.relu(body(x)))
    loss = (out.squeeze(-1) - x.pow(2).sum(-1)).abs().mean()
    fast.zero_grad()
    fast.zero_grad()  #- here
#+     slow.zero_grad()
    loss.backward()  #! also
    fast.step()
    slow.step()  #! also
print(loss.item())
