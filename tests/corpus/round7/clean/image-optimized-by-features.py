import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(139)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU())
features.eval().requires_grad_(False)
TAPS = {"style": 1, "content": 4}


def activations(image):
    out, h = {}, image
    for i, layer in enumerate(features):
        h = layer(h)
        for name, at in TAPS.items():
            if i == at:
                out[name] = h
    return out


def gram(h):
    f = h.flatten(2)
    return f @ f.transpose(1, 2) / f.shape[-1]


content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
want_content = activations(content)["content"]
want_style = gram(activations(style)["style"])
image = nn.Parameter(content.clone())
optimizer = torch.optim.Adam([image], lr=0.02)
for step in range(15):
    got = activations(image)
    variation = (image[..., 1:] - image[..., :-1]).abs().mean()
    loss = F.mse_loss(got["content"], want_content) + 50 * F.mse_loss(gram(got["style"]), want_style) + 0.1 * variation
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        image.clamp_(0, 1)
print(loss.item())
