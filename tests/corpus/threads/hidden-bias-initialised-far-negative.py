# /// case
# title = "Constant initialisation of the bias kills every ReLU"
# category = "cause"
# kind = "dead-activation"
# kinds_also_ok = ["dead-relu"]
# severity = "warning"
# names = ["bias", "fc1"]
# symptom = "the first layer's gradient is exactly zero from the first step on"
# symptom_check = "float(net.fc1.weight.grad.abs().max()) == 0"
# cause = "bias at -10 before ReLU of inputs of unit size"
# fix = "initialise biases with zero"
# evidence = [
#     { url = "https://github.com/facebookresearch/dlrm/pull/358", title = "switched bias initialization to initialize to zeros per standard Xavi…" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 40)
        self.fc2 = nn.Linear(40, 5)
        self.reset()

    def reset(self):
        for layer in (self.fc1, self.fc2):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.constant_(layer.bias, -10.0)  #- here
#+             nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))  #! also


torch.manual_seed(6)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
inputs, labels = torch.randn(64, 20), torch.randint(0, 5, (64,))
for epoch in range(6):
    optimizer.zero_grad()
    loss = F.cross_entropy(net(inputs), labels)
    loss.backward()
    optimizer.step()
    print(epoch, loss.item())
