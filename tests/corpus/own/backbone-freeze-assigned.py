# /// case
# category = "leaf"
# kind = "freeze-without-effect"
# severity = "warning"
# names = ["backbone", "encoder"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.encoder(x))


net = Detector()
net.encoder.requires_grad = False  #- here
#+ net.encoder.requires_grad_(False)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
before = net.encoder[0].weight.detach().clone()
for _ in range(3):
    sgd.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(12, 8)), torch.randint(0, 2, (12,))).backward()
    sgd.step()
print("encoder moved:", not torch.equal(before, net.encoder[0].weight))
