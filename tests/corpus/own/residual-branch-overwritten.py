# /// case
# category = "gradient"
# kind = "gradient-never-arrives"
# severity = "warning"
# names = ["y"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)
        self.dense = nn.Linear(8, 8)
        self.mix = nn.Linear(8, 8)
        self.out = nn.Linear(8, 2)

    def forward(self, x):
        c = self.conv(x).mean(1)
        y = torch.relu(self.dense(c))  #! here
        y = torch.relu(self.mix(c))  #- here
#+         y = torch.relu(self.mix(y))
        return self.out(y)


net = Wide()
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for _ in range(5):
    x = torch.randn(6, 2, 8)
    loss = nn.functional.cross_entropy(net(x), torch.randint(0, 2, (6,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
