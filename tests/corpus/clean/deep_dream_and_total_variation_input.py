import torch
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU())
for p in features.parameters():
    p.requires_grad_(False)
features.eval()
content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


with torch.no_grad():
    target_content, target_gram = features(content), gram(features(style))
canvas = content.clone().requires_grad_(True)
optimizer = torch.optim.Adam([canvas], lr=0.05)
for it in range(12):
    f = features(canvas)
    c_loss = (f - target_content).pow(2).mean()
    s_loss = (gram(f) - target_gram).pow(2).sum()
    tv = (canvas[..., 1:] - canvas[..., :-1]).abs().mean() + (canvas[..., 1:, :] - canvas[..., :-1, :]).abs().mean()
    loss = c_loss + 1e3 * s_loss + 1e-2 * tv
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        canvas.clamp_(0, 1)
print(c_loss.item(), s_loss.item(), tv.item())
