# /// case
# title = "The optimised image is clamped in place while it requires grad"
# category = "in-place"
# kind = "inplace-on-leaf"
# severity = "error"
# names = ["image", "clamp_"]
# symptom = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation"
# raises = "RuntimeError"
# raises_message = "a leaf Variable that requires grad"
# cause = "clamp_ on a leaf with grad mode on"
# fix = "under no_grad"
# evidence = [
#     { url = "https://github.com/divelab/DIG/issues/164", title = "a leaf Variable that requires grad is being used in an in-place operation" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)
extractor = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 3)).requires_grad_(False)
content = torch.rand(1, 3, 14, 14)
with torch.no_grad():
    wanted = extractor(content)
image = torch.rand(1, 3, 14, 14, requires_grad=True)
opt = torch.optim.Adam([image], lr=0.05)
for it in range(8):
    opt.zero_grad()
    loss = (extractor(image) - wanted).pow(2).mean()
    tv = (image[..., 1:] - image[..., :-1]).abs().mean()
    (loss + 0.01 * tv).backward()
    opt.step()
    image.clamp_(0, 1)  #- here
#+     with torch.no_grad():
#+         image.clamp_(0, 1)
print(loss.item())
