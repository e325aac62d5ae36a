# /// case
# title = "Softmax in the model and CrossEntropyLoss outside"
# category = "loss-wiring"
# kind = "double-softmax"
# severity = "warning"
# names = ["self.out", "criterion"]
# difficulty = "easy"
# symptom = "silent: the loss cannot go below a floor, gradients are flattened"
# symptom_check = "bool((net(x).sum(1) - 1).abs().max() < 1e-4)"
# cause = "CrossEntropyLoss applies log_softmax itself"
# fix = "return logits"
# evidence = [
#     { url = "https://github.com/ariecattan/SciCo/issues/2" },
#     { url = "https://github.com/Lightning-Universe/lightning-bolts/issues/654" },
#     { url = "https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10" },
#     { url = "https://discuss.pytorch.org/t/cross-entropy-loss-is-not-decreasing/43814/16" },
# ]
# ///
import torch
from torch import nn


class Iris(nn.Module):
    def __init__(self):
        super().__init__()
        self.hid = nn.Linear(4, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        z = self.out(torch.relu(self.hid(x)))
        return torch.softmax(z, dim=1)  #- here
#+         return z


torch.manual_seed(0)
net = Iris()
opt = torch.optim.Adam(net.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
x = torch.randn(90, 4)
y = x[:, :3].argmax(1)
for epoch in range(40):
    opt.zero_grad()
    loss = criterion(net(x), y)  #! also
    loss.backward()
    opt.step()
print(loss.item())
