# /// case
# title = "The network ends with a softmax, and the loss has one"
# category = "loss"
# kind = "double-softmax"
# severity = "warning"
# severity_by_writer = "error"
# names = ["softmax", "CrossEntropyLoss"]
# symptom = "the loss cannot go below a bound far above 0"
# symptom_check = "abs(out.sum(1) - 1).max().item() < 1e-5"
# cause = "cross_entropy expects logits"
# fix = "return the logits"
# evidence = [
#     { url = "https://github.com/jindongwang/Deep-learning-activity-recognition/issues/10", title = "Bug in code" },
#     { url = "https://github.com/Lightning-Universe/lightning-bolts/issues/654", title = "Softmax applied twice when computing loss in LogisticRegression" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(83)
N_FEATURES, N_WINDOW, N_CLASS = 9, 32, 6


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv1d(N_FEATURES, 16, 5), nn.ReLU(), nn.MaxPool1d(2))
        self.conv2 = nn.Sequential(nn.Conv1d(16, 24, 5), nn.ReLU(), nn.MaxPool1d(2))
        self.fc1 = nn.Sequential(nn.Linear(24 * 5, 40), nn.ReLU())
        self.fc2 = nn.Linear(40, N_CLASS)

    def forward(self, x):
        out = self.conv2(self.conv1(x))
        out = self.fc1(out.flatten(1))
        return F.softmax(self.fc2(out), dim=1)  #- here
#+         return self.fc2(out)


def windows(n):
    label = torch.randint(0, N_CLASS, (n,))
    t = torch.arange(N_WINDOW) / 5.0
    signal = torch.sin((label[:, None, None] + 1) * t + torch.rand(n, N_FEATURES, 1))
    return signal + 0.3 * torch.randn(n, N_FEATURES, N_WINDOW), label


model = Network()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for e in range(10):
    model.train()
    sample, target = windows(48)
    output = model(sample)
    loss = criterion(output, target)  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        test, label = windows(48)
        out = model(test)
    print(e, loss.item(), (out.argmax(1) == label).float().mean().item())
