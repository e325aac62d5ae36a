# /// case
# title = "A layer is defined and optimised but not called in forward (wrong attribute used twice)"
# category = "optimizer-wiring"
# kind = "parameter-never-used"
# severity = "warning"
# names = ["self.fc2"]
# difficulty = "medium"
# symptom = "silent: fc2 keeps grad None"
# symptom_check = "mlp.fc2.weight.grad is None"
# cause = "forward calls fc1 twice"
# fix = "use fc2"
# evidence = [
#     { url = "https://github.com/ImprintLab/MedSegDiff/issues/27" },
#     { url = "https://github.com/Megvii-BaseDetection/YOLOX/issues/885" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Mixer(nn.Module):
    def __init__(self, dim=10):
        super().__init__()
        self.fc1 = nn.Linear(dim, dim)
        self.fc2 = nn.Linear(dim, dim)  #! also
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        x = x + F.gelu(self.fc1(x))
        x = x + F.gelu(self.fc1(x))  #- here
#+         x = x + F.gelu(self.fc2(x))
        return self.head(x)


torch.manual_seed(61)
mlp = Mixer()
opt = torch.optim.Adam(mlp.parameters(), lr=1e-3)
for _ in range(6):
    xb = torch.randn(20, 10)
    yb = (xb.sum(1) > 0).long()
    opt.zero_grad()
    loss = F.cross_entropy(mlp(xb), yb)
    loss.backward()
    opt.step()
print(loss.item())
