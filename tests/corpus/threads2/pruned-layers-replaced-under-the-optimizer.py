# /// case
# title = "Layers are replaced by smaller ones while the optimizer keeps the old"
# category = "optimizer"
# kind = "parameters-replaced-after-optimizer"
# kinds_also_ok = ["parameters-not-in-optimizer", "optimizer-holds-other-model", "step-without-gradient"]
# severity = "warning"
# names = ["speedup", "optimizer", "layers"]
# symptom = "the finetuned small model does not change"
# symptom_check = "torch.equal(small, net.fc2.weight)"
# cause = "the optimizer still holds the parameters of the old layers"
# fix = "a new optimizer after the replacement"
# evidence = [
#     { url = "https://github.com/microsoft/nni/issues/4521", title = "The parameters are not updated when the pruned model is finetuned" },
# ]
# ///
import torch
from torch import nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.fc1 = nn.Linear(12, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 4)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def shrink(layer, rows, cols):
    small = nn.Linear(len(cols), len(rows))
    with torch.no_grad():
        small.weight.copy_(layer.weight[rows][:, cols])
        small.bias.copy_(layer.bias[rows])
    return small


def speedup_model(net, ratio):
    """Cuts the neurons with the smallest norm out of the hidden layers."""
    keep = int(net.fc1.out_features * ratio)
    top1 = net.fc1.weight.norm(dim=1).topk(keep).indices
    top2 = net.fc2.weight.norm(dim=1).topk(keep).indices
    net.fc1 = shrink(net.fc1, top1, torch.arange(net.fc1.in_features))  #! here
    net.fc2 = shrink(net.fc2, top2, top1)  #! also
    net.fc3 = shrink(net.fc3, torch.arange(net.fc3.out_features), top2)  #! also


def run(net, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(32, 12)
        loss = F.cross_entropy(net(x), (x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(55)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)  #! also
run(net, optimizer, 6)
speedup_model(net, 0.5)  #! here
#+ optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
small = net.fc2.weight.detach().clone()
print(run(net, optimizer, 6))  #! also
