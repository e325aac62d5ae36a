# /// case
# title = "Residual blocks kept in a Python list, initialised by hand"
# category = "optimizer-time"
# kind = "module-not-registered"
# kinds_also_ok = ["parameters-not-in-optimizer", "unregistered-parameters"]
# severity = "warning"
# names = ["blocks"]
# symptom = "parameters() does not list the blocks; they never move"
# symptom_check = "len(list(net.parameters())) == 4"
# cause = "a list does not register modules"
# fix = "nn.ModuleList"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/72580", title = "Setting a list of Modules does not work like setting a Module, and throws no warning" },
#     { url = "https://github.com/pytorch/pytorch/issues/666", title = "nn.Module not importing parameters contained in lists" },
# ]
# ///
import torch
import torch.nn as nn


class ResNet(nn.Module):
    def __init__(self, width=12, depth=3):
        super().__init__()
        self.stem = nn.Linear(5, width)
        self.blocks = [nn.Linear(width, width) for _ in range(depth)]  #- here
#+         self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 1)
        for block in self.blocks:
            nn.init.kaiming_normal_(block.weight)
            nn.init.zeros_(block.bias)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + torch.relu(block(x))  #! also
        return self.head(x)


torch.manual_seed(2)
net = ResNet()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)  #! also
for step in range(10):
    x = torch.randn(32, 5)
    loss = (net(x) - x.prod(1, keepdim=True)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
