# /// case
# title = "The Dice loss is computed of the thresholded mask"
# category = "graph-break"
# kind = "non-differentiable-op"
# kinds_also_ok = ["thresholding-cuts-graph", "comparison-in-loss"]
# severity = "error"
# names = ["dice_loss", "predicted"]
# symptom = "backward raises, because the loss depends on no parameter"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "The comparison with 0.5 has no derivative, so that the loss has no history."
# fix = "compute the loss from the probabilities and threshold for the score only"
# ///
import torch
from torch import nn


class UNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 3, padding=1), nn.ReLU(), nn.Upsample(scale_factor=2))
        self.up = nn.Conv2d(3 * width, 1, 3, padding=1)

    def forward(self, image):
        skip = self.down(image)
        return self.up(torch.cat([skip, self.middle(skip)], dim=1))


def dice(a, b, smooth=1.0):
    a, b = a.flatten(1), b.flatten(1)
    return (2 * (a * b).sum(1) + smooth) / (a.sum(1) + b.sum(1) + smooth)


def discs(n, size=12):
    centre = torch.rand(n, 2, 1, 1) * size
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    inside = (rows - centre[:, :1]) ** 2 + (columns - centre[:, 1:]) ** 2 < 12
    return inside.float() + 0.3 * torch.randn(n, 1, size, size), inside.float()


torch.manual_seed(202)
net = UNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(10):
    image, mask = discs(8)
    probability = net(image).sigmoid()
    predicted = (probability > 0.5).float()  #! here
    loss = 1 - dice(predicted, mask).mean()  #- here
#+     loss = 1 - dice(probability, mask).mean()
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
    print(step, loss.item(), dice(predicted, mask).mean().item())
