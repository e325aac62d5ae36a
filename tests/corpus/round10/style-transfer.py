# /// case
# title = "The image is rebound to a new leaf while the optimizer keeps the old one"
# category = "leaf"
# kind = "optimized-tensor-rebound"
# kinds_also_ok = ["optimizer-holds-old-tensor", "leaf-replaced-in-loop", "optimizer-stale-leaf"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["canvas", "optimizer"]
# symptom = "the loss falls once and then stays exactly where it is"
# symptom_check = "losses[1] == losses[-1]"
# cause = "After the first step canvas is another tensor than the one in the optimizer, and its gradients are never used."
# fix = "clamp the same tensor in place"
# ///
import torch
import torch.nn.functional as F
from torch import nn


def random_extractor(widths=(3, 8, 16)):
    stages = nn.ModuleList()
    for cin, cout in zip(widths, widths[1:]):
        stages.append(nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)))
    for weight in stages.parameters():
        weight.requires_grad_(False)
    return stages.eval()


def features(stages, image):
    maps = []
    for stage in stages:
        image = stage(image)
        maps.append(image)
    return maps


def gram(fmap):
    flat = fmap.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1]


def stylise(stages, content, style, steps=40, lr=0.03, style_weight=200.0):
    with torch.no_grad():
        content_maps = features(stages, content)
        style_grams = [gram(m) for m in features(stages, style)]
    canvas = content.clone().requires_grad_()
    optimizer = torch.optim.Adam([canvas], lr=lr)  #! also
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        maps = features(stages, canvas)
        content_loss = F.mse_loss(maps[-1], content_maps[-1])
        style_loss = sum(F.mse_loss(gram(m), g) for m, g in zip(maps, style_grams))
        loss = content_loss + style_weight * style_loss
        loss.backward()
        optimizer.step()  #! also
        canvas = canvas.detach().clamp(0, 1).requires_grad_()  #- here
#+         canvas.data.clamp_(0, 1)
        losses.append(loss.item())
    return canvas.detach(), losses


torch.manual_seed(4)
ramp = torch.linspace(0, 1, 24)
content = torch.stack([ramp.expand(24, 24), ramp[:, None].expand(24, 24), torch.full((24, 24), 0.5)])[None]
style = (torch.sin(12 * ramp)[None, None, None] * 0.5 + 0.5).expand(1, 3, 24, 24) * torch.rand(1, 3, 1, 1)
stages = random_extractor()
picture, losses = stylise(stages, content, style)
print(f"{losses[0]:.4f} -> {losses[-1]:.4f}, range {picture.min():.2f}..{picture.max():.2f}")
