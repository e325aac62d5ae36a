# /// case
# category = "wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["classifier", "net"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Pretrained(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Linear(6, 12)
        self.classifier = nn.Linear(12, classes)

    def forward(self, x):
        return self.classifier(self.features(x).relu())


net = Pretrained()
#+ net.classifier = nn.Linear(12, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)  #! here
net.classifier = nn.Linear(12, 3)  #- also
for _ in range(3):
    loss = nn.functional.cross_entropy(net(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(loss.item())
