# /// case
# title = "Validation runs in train mode and feeds the running statistics"
# category = "mode"
# kind = "missing-eval-mode"
# kinds_also_ok = ["validation-in-train-mode", "batch-norm-contaminated"]
# severity = "warning"
# names = ["eval", "validate"]
# symptom = "batch norm counts the validation batches too, dropout is on"
# symptom_check = "int(net.bn.num_batches_tracked) > 12"
# cause = "no_grad does not switch to eval mode"
# fix = "net.eval() and back"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class AudioNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 7, stride=3)
        self.bn = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(6, classes)

    def forward(self, wave):
        h = torch.relu(self.bn(self.conv(wave)))
        return self.fc(self.drop(h.mean(dim=2)))


def fit(net, loaders, epochs):
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters(), lr=4e-3)
    for epoch in range(epochs):
        net.train()
        for wave, label in loaders["train"]:
            optimizer.zero_grad()
            loss = criterion(net(wave), label)
            loss.backward()
            optimizer.step()

        correct = seen = 0
#+         net.eval()
        with torch.no_grad():  #! here
            for wave, label in loaders["val"]:
                correct += (net(wave).argmax(1) == label).sum().item()  #! also
                seen += len(label)
        print(epoch, loss.item(), correct / seen)


torch.manual_seed(81)
t = torch.linspace(0, 6.28, 48)
label = torch.randint(0, 3, (80,))
wave = torch.sin(t * (label + 1).unsqueeze(1) * 3).unsqueeze(1) + 0.2 * torch.randn(80, 1, 48)
loaders = {
    "train": DataLoader(TensorDataset(wave[:60], label[:60]), batch_size=15, shuffle=True),
    "val": DataLoader(TensorDataset(wave[60:], label[60:]), batch_size=10),
}
net = AudioNet(3)
fit(net, loaders, epochs=3)
