# /// case
# title = "Epsilon stands outside the square root of a normalisation"
# category = "numerics"
# kind = "nonfinite-gradient"
# severity = "error"
# names = ["norm_factor", "sqrt", "normalize_tensor", "eps"]
# symptom = "the weights are NaN after one step"
# symptom_check = "bool(torch.isnan(model.body[0].weight).any())"
# cause = "sqrt has an infinite slope at zero"
# fix = "add eps under the root"
# evidence = [
#     { url = "https://github.com/richzhang/PerceptualSimilarity/issues/69", title = "RuntimeError: Function 'SqrtBackward' returned nan values in its 0th output." },
#     { url = "https://github.com/mpariente/pytorch_stoi/pull/14", title = "Fixing EPS application when applying sqrt" },
# ]
# ///
import torch
import torch.nn as nn


def normalize_tensor(in_feat, eps=1e-10):
    norm_factor = torch.sqrt(torch.sum(in_feat**2, dim=1, keepdim=True))  #- here
    return in_feat / (norm_factor + eps)  #- also
#+     norm_factor = torch.sqrt(torch.sum(in_feat**2, dim=1, keepdim=True) + eps)
#+     return in_feat / norm_factor


class PerceptualDistance(nn.Module):
    def __init__(self, chns=(6, 8)):
        super().__init__()
        self.slice1 = nn.Conv2d(3, chns[0], 3, padding=1, bias=False)
        self.slice2 = nn.Sequential(nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(chns[0], chns[1], 3, padding=1, bias=False))
        self.requires_grad_(False)

    def features(self, x):
        h1 = self.slice1(x)
        return [h1, self.slice2(h1)]

    def forward(self, a, b):
        total = 0.0
        for fa, fb in zip(self.features(a), self.features(b)):
            total = total + (normalize_tensor(fa) - normalize_tensor(fb)).pow(2).sum(1).mean()
        return total


class Inpainter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, image, mask):
        out = torch.sigmoid(self.body(torch.cat([image * mask, mask], 1)))
        return out * (image.sum(1, keepdim=True) > 0)


torch.manual_seed(91)
model, lpips = Inpainter(), PerceptualDistance()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    image = torch.rand(2, 3, 8, 8)
    image[:, :, :4] = 0  # letterbox
    mask = (torch.rand(2, 1, 8, 8) > 0.3).float()
    restored = model(image, mask)
    loss = (restored - image).abs().mean() + 0.1 * lpips(restored, image)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
