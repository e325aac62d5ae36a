# /// case
# title = "The classifier is swapped and initialised after the optimizer was made"
# category = "optimizer-time"
# kind = "parameters-not-in-optimizer"
# kinds_also_ok = ["parameters-replaced-after-optimizer"]
# severity = "warning"
# names = ["fc", "classifier"]
# symptom = "the new layer has gradients and does not move"
# symptom_check = "torch.equal(net.fc.weight, before)"
# cause = "the optimizer holds the old layer's parameters"
# fix = "make the optimizer afterwards"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/14467", title = 'Optimizer warning when parameters "change"' },
#     { url = "https://github.com/namisan/mt-dnn/pull/40", title = "Moving model.cuda before the optimizer construction" },
# ]
# ///
import torch
from torch import nn


class Backbone(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(14, 10), nn.ReLU())
        self.fc = nn.Linear(10, classes)

    def forward(self, x):
        return self.fc(self.features(x))


torch.manual_seed(0)
net = Backbone(classes=100)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)  #- here
net.fc = nn.Linear(10, 4)  #! here
nn.init.normal_(net.fc.weight, std=0.01)
nn.init.zeros_(net.fc.bias)
#+ optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.fc.weight.detach().clone()
for _ in range(5):
    x, y = torch.randn(20, 14), torch.randint(0, 4, (20,))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()  #! also
print((net.fc.weight - before).abs().max())
