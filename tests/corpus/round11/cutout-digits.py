# /// case
# title = "The augmentation writes into the data set"
# category = "data"
# kind = "augmentation-modifies-dataset"
# kinds_also_ok = ["inplace-augmentation", "dataset-modified-in-place", "missing-clone"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["image", "img", "Cutout", "images"]
# symptom = "after some epochs most of the training images is erased"
# symptom_check = "(train_set.images == 0).float().mean().item() > 0.3"
# cause = "images[index] is a view, and Cutout sets its pixels to zero in place."
# fix = "augment a copy"
# ///
import random
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SEGMENTS = {0: "abcdef", 1: "bc", 2: "abged", 3: "abgcd", 4: "fgbc", 5: "afgcd"}
BOXES = {"a": (1, 2, 3, 10), "b": (2, 8, 8, 10), "c": (7, 13, 8, 10), "d": (12, 13, 3, 10),
         "e": (7, 13, 2, 4), "f": (2, 8, 2, 4), "g": (7, 8, 3, 10)}


def seven_segment(digit):
    img = torch.full((1, 14, 12), 0.1)
    for s in SEGMENTS[digit]:
        top, bottom, left, right = BOXES[s]
        img[:, top:bottom, left:right] = 1.0
    return img  #! also


class Cutout:
    def __init__(self, size=5, p=0.7):
        self.size, self.p = size, p

    def __call__(self, img):
        if random.random() < self.p:
            r = random.randint(0, img.shape[1] - self.size)
            c = random.randint(0, img.shape[2] - self.size)
            img[:, r:r + self.size, c:c + self.size] = 0.0  #! here
        return img  #! also


class DigitDataset(Dataset):
    def __init__(self, n, transform=None):
        self.labels = torch.randint(0, 6, (n,))
        clean = torch.stack([seven_segment(d) for d in self.labels.tolist()])
        self.images = clean + 0.1 * torch.rand_like(clean)
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image, label = self.images[index], self.labels[index]  #- here
#+         image, label = self.images[index].clone(), self.labels[index]
        if self.transform is not None:
            image = self.transform(image)  #! also
        return image, label  #! also


def run(loader, model, criterion, optimizer=None):
    model.train(optimizer is not None)
    correct = total = 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            out = model(x)
            loss = criterion(out, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            correct += (out.argmax(1) == y).sum().item()
            total += len(y)
    return correct / total


random.seed(0)
torch.manual_seed(0)
torch.set_num_threads(1)
train_set = DigitDataset(192, transform=Cutout())
test_set = DigitDataset(96)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
test_loader = DataLoader(test_set, batch_size=96)
model = nn.Sequential(nn.Flatten(), nn.Linear(14 * 12, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 6))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(20):
    train_acc = run(train_loader, model, criterion, optimizer)
    test_acc = run(test_loader, model, criterion)
    if epoch % 5 == 0:
        print(f"epoch {epoch:2d}  train {train_acc:.3f}  test {test_acc:.3f}")
