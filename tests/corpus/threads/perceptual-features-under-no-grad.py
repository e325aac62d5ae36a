# /// case
# title = "Perceptual loss whose fake features are taken under no_grad"
# category = "partial-cut"
# kind = "graph-break-no-grad"
# kinds_also_ok = ["constant-loss-term"]
# severity = "warning"
# names = ["perceptual", "feats"]
# symptom = "the perceptual term has no grad_fn; only the pixel loss trains the generator"
# symptom_check = "perceptual.grad_fn is None"
# cause = "the frozen network also runs without grad on the generator's output"
# fix = "keep the weights frozen, but let the input be tracked"
# evidence = [
#     { url = "https://github.com/junyanz/pytorch-CycleGAN-and-pix2pix/issues/822", title = "If you want to use perceptual loss in your CycleGAN training" },
#     { url = "https://github.com/myscience/open-genie/issues/6", title = "Question about the PerceptualLoss and RecordingProbe" },
# ]
# ///
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
    with torch.no_grad():  #- here
        feats = vgg(fake)  #- here
#+     feats = vgg(fake)
    with torch.no_grad():
        wanted = vgg(real)
    return (feats - wanted).pow(2).mean()


for it in range(5):
    hr = torch.rand(2, 3, 16, 16)
    lr = nn.functional.avg_pool2d(hr, 2)
    sr = upscaler(lr)
    perceptual = content_loss(sr, hr)  #! also
    total = l1(sr, hr) + 0.1 * perceptual  #! also
    opt.zero_grad()
    total.backward()
    opt.step()
print(total.item())
