# /// case
# title = "The random flips are applied to the image alone"
# category = "data"
# kind = "augmentation-not-applied-to-target"
# kinds_also_ok = ["labels-misaligned-with-inputs", "mask-not-flipped", "augmentation-breaks-pairs"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["flip", "mask", "augment"]
# symptom = "the training loss stays many times too high and the predictions are blurred"
# symptom_check = "sum(losses[-5:]) / 5 > 0.3"
# cause = "In three of four cases the mask no longer belongs to the image."
# fix = "flip the mask along with the image"
# ///
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def draw_vessels(n, size=24):
    axis = torch.linspace(0, 1, size)
    offset, slope = torch.rand(n, 1, 1) * 0.6, torch.rand(n, 1, 1) * 0.8 - 0.2
    bend = 0.08 * torch.sin(2 * math.pi * (axis[None, :, None] + torch.rand(n, 1, 1)))
    distance = axis[None, None, :] - (offset + slope * axis[None, :, None] + bend)
    masks = (distance.abs() < 0.06).float().unsqueeze(1)
    return masks + 0.3 * torch.randn_like(masks), masks


def augment(image, mask):
    for axis in (-1, -2):
        if torch.rand(()) < 0.5:
            image = image.flip(axis)  #- here
#+             image, mask = image.flip(axis), mask.flip(axis)
    return image + 0.1 * torch.randn_like(image), mask  #! also


class Fundus(Dataset):
    def __init__(self, images, masks):
        self.images, self.masks = images, masks

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image, mask = self.images[index], self.masks[index]
        image, mask = augment(image, mask)  #! also
        return image, mask


def dice(net, images, masks):
    with torch.no_grad():
        predicted = (net(images) > 0).float()
    return (2 * (predicted * masks).sum() / (predicted.sum() + masks.sum() + 1e-6)).item()


torch.manual_seed(16)
images, masks = draw_vessels(112)
loader = DataLoader(Fundus(images[:80], masks[:80]), batch_size=16, shuffle=True)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(),
    nn.Conv2d(12, 12, 3, padding=2, dilation=2), nn.ReLU(),
    nn.Conv2d(12, 1, 3, padding=1),
)
criterion = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(3.0))
optimizer = torch.optim.Adam(net.parameters(), lr=6e-3)
losses = []
for epoch in range(10):
    for image, mask in loader:
        optimizer.zero_grad()
        loss = criterion(net(image), mask)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, held-out dice {dice(net, images[80:], masks[80:]):.3f}")
