import torch
from torch import nn

torch.manual_seed(7)
upscaler = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(3, 3, 3, padding=1))
vgg = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)).eval()
for w in vgg.parameters():
    w.requires_grad = False
l1 = nn.L1Loss()
opt = torch.optim.Adam(upscaler.parameters(), lr=2e-3)


def content_loss(fake, real):
    with torch.no_grad():
        feats = vgg(fake)
    with torch.no_grad():
        wanted = vgg(real)
    return (feats - wanted).pow(2).mean()


for it in range(5):
    hr = torch.rand(2, 3, 16, 16)
    lr = nn.functional.avg_pool2d(hr, 2)
    sr = upscaler(lr)
    perceptual = content_loss(sr, hr)
    total = l1(sr, hr) + 0.1 * perceptual
    opt.zero_grad()
    total.backward()
    opt.step()
print(total.item())
