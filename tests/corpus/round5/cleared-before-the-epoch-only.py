# /// case
# title = "Gradients are cleared once per epoch, but stepped in each batch"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["gradient-accumulation"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad"]
# symptom = "each step uses the sum of all gradients of the epoch so far"
# symptom_check = "not torch.allclose(stepped, own, atol=1e-6)"
# cause = "zero_grad is outside of the batch loop"
# fix = "clear in each batch"
# evidence = [
#     { url = "https://github.com/salesforce/corr_based_prediction/issues/1", title = "Does the model need accumulate the gradients?" },
# ]
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(77)
x = torch.randn(160, 9)
y = (x[:, 0] - x[:, 3] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32)

net = nn.Sequential(nn.Linear(9, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
criterion = nn.CrossEntropyLoss()


def correlation_penalty(h, labels):
    """Features should not vary within a class."""
    return sum(h[labels == c].var(0).mean() for c in (0, 1))


def train(epoch):
    net.train()
    train_loss, correct = 0.0, 0
    optimizer.zero_grad()  #- here
    for batch_idx, (inputs, targets) in enumerate(loader):
        h = net[:3](inputs)
        outputs = net[3](h)
        loss = criterion(outputs, targets) + 0.05 * correlation_penalty(h, targets)
        own = torch.autograd.grad(loss, net[3].weight, retain_graph=True)[0]
#+         optimizer.zero_grad()
        loss.backward()  #! also
        stepped = net[3].weight.grad.clone()
        optimizer.step()
        train_loss += loss.item()
        correct += (outputs.argmax(1) == targets).sum().item()
    print(epoch, train_loss / len(loader), correct / len(x))
    return own, stepped


for epoch in range(3):
    own, stepped = train(epoch)
