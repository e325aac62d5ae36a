# /// case
# title = "The classification head is replaced after the optimizer was created"
# category = "optimizer-wiring"
# kind = "parameters-replaced-after-optimizer"
# severity = "warning"
# names = ["net.head", "opt"]
# difficulty = "medium"
# symptom = "silent: the new head never changes; the optimizer steps the discarded one"
# symptom_check = "torch.equal(head0, net.head.weight)"
# cause = "the optimizer keeps references to the old Parameters"
# fix = "replace the head first (or add_param_group)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/14467" },
#     { url = "https://github.com/freud14/poutyne/pull/37" },
# ]
# ///
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(16, 24), nn.ReLU())
        self.head = nn.Linear(24, classes)

    def forward(self, x):
        return self.head(self.features(x))


torch.manual_seed(3)
net = Net()
#+ net.head = nn.Linear(24, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  #! here
net.head = nn.Linear(24, 3)  #- also
head0 = net.head.weight.detach().clone()
x, y = torch.randn(60, 16), torch.randint(0, 3, (60,))
for epoch in range(5):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
print(loss.item())
