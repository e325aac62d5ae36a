# /// case
# category = "leaf"
# kind = "hook-on-untracked-tensor"
# severity = "error"
# names = ["maps", "register_hook"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU())
head = nn.Linear(4, 3)
gradients = {}


@torch.no_grad()  #- here
def features(image):
    return body(image)


maps = features(torch.rand(1, 1, 8, 8))
maps.register_hook(lambda grad: gradients.update(maps=grad))  #! also
score = head(maps.mean((2, 3)))[0, 1]
score.backward()
weights = gradients["maps"].mean((2, 3), keepdim=True)
print((weights * maps).sum(1).relu().shape)
