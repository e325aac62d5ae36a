import torch
import torch.nn as nn
import torch.nn.functional as F


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1)])

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = F.relu(layer(x))
            found.append(x)
            x = F.avg_pool2d(x, 2)
        return found


def gram(f):
    n, c, h, w = f.shape
    f = f.reshape(n, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


torch.manual_seed(33)
net = Features().eval().requires_grad_(False)
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
with torch.no_grad():
    wanted_content = net(content)[-1]
    wanted_style = [gram(f) for f in net(style)]
image = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([image], lr=0.03)
for step in range(12):
    found = net(image)
    loss = F.mse_loss(found[-1], wanted_content)
    loss = loss + 100 * sum(F.mse_loss(gram(f), w) for f, w in zip(found, wanted_style))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
    if step % 4 == 0:
        print(step, loss.item())
