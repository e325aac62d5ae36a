import torch
from torch import nn

torch.manual_seed(0)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 16)])
        self.fc = nn.Linear(16, 3)

    def forward(self, x):
        for stage in self.stages:
            x = torch.relu(stage(x))
        return self.fc(x)


net = Classifier()
net.stages.requires_grad_(False)
opt = torch.optim.SGD(net.fc.parameters(), lr=0.1, momentum=0.9)
X = torch.randn(48, 8)
Y = X[:, :3].argmax(1)
schedule = {2: 2, 4: 1, 6: 0}
for epoch in range(8):
    if epoch in schedule:
        stage = net.stages[schedule[epoch]].requires_grad_(True)
        opt.add_param_group({"params": stage.parameters(), "lr": 0.1 * 0.5 ** (epoch // 2)})
    loss = nn.functional.cross_entropy(net(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, len(opt.param_groups), loss.item())
