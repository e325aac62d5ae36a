# /// case
# title = "A sigmoid gate is scaled in place after it was computed"
# category = "in-place"
# kind = "in-place-on-saved-tensor"
# kinds_also_ok = ["version-mismatch"]
# severity = "error"
# names = ["gate", "mul_"]
# symptom = "backward raises"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid needs its output for the gradient"
# fix = "multiply out of place"
# ///
import torch
import torch.nn as nn


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction=2, strength=0.9):
        super().__init__()
        self.strength = strength
        self.fc1 = nn.Linear(channels, channels // reduction)
        self.fc2 = nn.Linear(channels // reduction, channels)

    def forward(self, x):
        pooled = x.mean(dim=(2, 3))
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(pooled))))  #! also
        gate.mul_(self.strength)  #- here
#+         gate = gate * self.strength
        return x * gate[:, :, None, None]


class SmallNet(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.se = SqueezeExcite(8)
        self.head = nn.Linear(8, classes)

    def forward(self, x):
        h = self.se(torch.relu(self.stem(x)))
        return self.head(h.mean(dim=(2, 3)))


torch.manual_seed(45)
net = SmallNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(6):
    images, labels = torch.rand(8, 3, 9, 9), torch.randint(0, 3, (8,))
    loss = nn.functional.cross_entropy(net(images), labels)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(step, loss.item())
