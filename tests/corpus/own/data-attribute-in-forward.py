# /// case
# category = "mode"
# kind = "graph-break-detach"
# severity = "warning"
# names = ["normed", "stem"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        h = self.stem(x)
        normed = h.data / (h.data.norm(dim=1, keepdim=True) + 1e-6)  #- here
#+         normed = h / (h.norm(dim=1, keepdim=True) + 1e-6)
        return self.head(normed.mean(-1))


net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(5, 2, 9)).logsumexp(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(net.stem.weight.grad)
