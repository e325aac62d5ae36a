import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
        self.fc = nn.Linear(8, 2)

    def forward(self, x, keep=False):
        maps = self.conv(x)
        if keep:
            maps.retain_grad()
        return self.fc(F.relu(maps).mean(dim=(2, 3))), maps


def grad_cam(model, image):
    model.eval()
    logits, maps = model(image, keep=True)
    model.zero_grad()
    logits[:, logits.argmax(1)].sum().backward()
    weight = maps.grad.mean(dim=(2, 3), keepdim=True)
    cam = F.relu((weight * maps).sum(1)).detach()
    model.zero_grad()
    return cam / (cam.max() + 1e-8)


torch.manual_seed(134)
model = ConvNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    model.train()
    x = torch.rand(16, 1, 8, 8)
    y = (x[:, 0, :4].mean((1, 2)) > x[:, 0, 4:].mean((1, 2))).long()
    loss = F.cross_entropy(model(x)[0], y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    cam = grad_cam(model, x[:1])
print(loss.item(), cam.shape)
