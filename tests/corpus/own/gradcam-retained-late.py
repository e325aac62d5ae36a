# /// case
# category = "leaf"
# kind = "retain-grad-after-backward"
# severity = "warning"
# names = ["maps"]
# ///
#-
import torch
import torch.nn.functional as F

torch.manual_seed(0)
kernel = torch.randn(4, 1, 3, 3, requires_grad=True)
head = torch.randn(4, requires_grad=True)
image = torch.rand(1, 1, 8, 8)


def cam():
    maps = F.conv2d(image, kernel, padding=1).relu()
    score = (maps.mean((2, 3)) @ head).sum()
#+     maps.retain_grad()
    score.backward()
    maps.retain_grad()  #- here
    grads = maps.grad  #! also
    weights = grads.mean((2, 3), keepdim=True) if grads is not None else torch.zeros(1, 4, 1, 1)
    return (weights * maps).sum(1).relu()


print(cam().max())
