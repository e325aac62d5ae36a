# /// case
# title = "A saliency helper reads .grad of the normalised image"
# category = "helper"
# kind = "grad-read-on-nonleaf"
# kinds_also_ok = ["grad-read-when-none"]
# severity = "warning"
# names = ["saliency", "grad"]
# symptom = ".grad of a non-leaf is None (with a warning)"
# symptom_check = "heat is None"
# cause = "the flag is set before the normalisation, .grad is read after it"
# fix = "read the leaf's gradient"
# evidence = [
#     { url = "https://github.com/ZF4444/MMAL-Net/issues/8", title = "Gradient of maximum score with respect to input image is 'None'" },
#     { url = "https://github.com/meta-pytorch/captum/issues/421", title = "non-leaf tensor warning in NoiseTunnel usage" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(5)
cnn = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)).eval()
mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def saliency(model, image):
    image = image.clone().requires_grad_()
    tensor = ((image - mean) / std).unsqueeze(0)  #! also
    scores = model(tensor)
    scores[0, scores.argmax()].backward()
    return tensor.grad  #- here
#+     return image.grad


heat = None
for _ in range(3):
    picture = torch.rand(3, 12, 12)
    heat = saliency(cnn, picture)
    if heat is not None:
        print(heat.abs().max().item())
