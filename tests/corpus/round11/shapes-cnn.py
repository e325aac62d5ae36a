# /// case
# title = "Softmax in front of CrossEntropyLoss"
# category = "loss"
# kind = "softmax-before-cross-entropy"
# kinds_also_ok = ["double-softmax", "cross-entropy-on-probabilities", "probabilities-given-to-logit-loss"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["softmax", "criterion", "outputs"]
# symptom = "the loss cannot go below 0.74 and training is slow"
# symptom_check = "torch.allclose(net(x_test).sum(1), torch.ones(len(x_test)), atol=1e-4)"
# cause = "CrossEntropyLoss expects logits and applies log-softmax itself."
# fix = "return the logits"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

CLASSES = ("square", "cross", "frame", "stripe")


def draw(label, size=14):
    img = torch.zeros(size, size)
    r, c = torch.randint(0, size - 8, (2,)).tolist()
    if label == 0:
        img[r:r + 7, c:c + 7] = 1
    elif label == 1:
        img[r + 3, c:c + 7] = 1
        img[r:r + 7, c + 3] = 1
    elif label == 2:
        img[r:r + 7, c:c + 7] = 1
        img[r + 1:r + 6, c + 1:c + 6] = 0
    else:
        img[r:r + 7:2, c:c + 7] = 1
    return img + 0.2 * torch.randn(size, size)


def make_split(n):
    labels = torch.randint(0, len(CLASSES), (n,))
    return torch.stack([draw(l) for l in labels.tolist()]).unsqueeze(1), labels


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc1 = nn.Linear(16 * 3 * 3, 32)
        self.fc2 = nn.Linear(32, len(CLASSES))

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.softmax(x, dim=1)  #- here
#+         return x


torch.manual_seed(42)
torch.set_num_threads(1)
x_train, y_train = make_split(400)
x_test, y_test = make_split(100)

net = Net()
criterion = nn.CrossEntropyLoss()  #! also
optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

for epoch in range(8):
    net.train()
    running_loss = 0.0
    perm = torch.randperm(len(x_train))
    for i in range(0, len(perm), 20):
        idx = perm[i:i + 20]
        optimizer.zero_grad()
        outputs = net(x_train[idx])  #! also
        loss = criterion(outputs, y_train[idx])  #! also
        loss.backward()
        optimizer.step()
        running_loss += loss.item()

    net.eval()
    with torch.no_grad():
        confidence, predicted = net(x_test).max(1)  #-
#+         confidence, predicted = F.softmax(net(x_test), dim=1).max(1)
    acc = (predicted == y_test).float().mean().item()
    print("[%d] loss: %.3f  test acc: %.2f" % (epoch + 1, running_loss / 20, acc))
