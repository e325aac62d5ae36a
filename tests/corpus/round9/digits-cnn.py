# /// case
# title = "The network ends with a softmax and is trained with CrossEntropyLoss"
# category = "loss"
# kind = "softmax-before-cross-entropy"
# kinds_also_ok = ["double-softmax", "probabilities-passed-as-logits"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["softmax", "criterion", "CrossEntropyLoss"]
# symptom = "the loss cannot fall below 0.90 and the gradients are weak"
# symptom_check = "epoch_loss > 0.9"
# cause = "CrossEntropyLoss applies log_softmax itself; here it is applied to probabilities."
# fix = "return the logits"
# ///
import torch
from torch import nn, optim


class DigitNet(nn.Module):
    def __init__(self, classes=5):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(16 * 4, 32),
            nn.ReLU(),
            nn.Linear(32, classes),
        )

    def forward(self, x):
        x = self.features(x)
        x = self.classifier(x)  #! also
        return torch.softmax(x, dim=1)  #- here
#+         return x


def accuracy(outputs, labels):
    return (outputs.argmax(dim=1) == labels).float().mean().item()


torch.manual_seed(1)
prototypes = (torch.rand(5, 1, 8, 8) > 0.5).float()
labels = torch.arange(100) % 5
images = prototypes[labels] + 0.3 * torch.randn(100, 1, 8, 8)

net = DigitNet()
criterion = nn.CrossEntropyLoss()  #! here
optimizer = optim.Adam(net.parameters(), lr=5e-3)

for epoch in range(10):
    running_loss = 0.0
    permutation = torch.randperm(100)
    for start in range(0, 100, 34):
        batch = permutation[start:start + 34]
        optimizer.zero_grad()
        outputs = net(images[batch])  #! also
        loss = criterion(outputs, labels[batch])  #! here
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(batch)
    epoch_loss = running_loss / 100
    print(f"epoch {epoch + 1} loss {epoch_loss:.3f} accuracy {accuracy(outputs, labels[batch]):.2f}")
