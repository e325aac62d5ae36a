# /// case
# category = "leaf"
# kind = "input-missing-requires-grad"
# severity = "warning"
# names = ["image", "batch"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(2)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 3)).eval()


def saliency(image, label):
    image = image.clone()  #-
#+     image = image.clone().requires_grad_()
    logits = model(image.unsqueeze(0))
    logits[0, label].backward()
    return image.grad.abs().amax(0)  #! here


batch = torch.rand(3, 1, 8, 8)
for picture, label in zip(batch, (0, 2, 1)):
    print(saliency(picture, label).shape)
