# /// case
# title = "Class-activation map reads .grad of an intermediate activation without retain_grad()"
# category = "leaf-nonleaf"
# kind = "grad-read-on-nonleaf"
# severity = "error"
# names = ["fmap"]
# difficulty = "easy"
# symptom = "AttributeError: 'NoneType' object has no attribute 'mean' (after the non-leaf UserWarning)"
# raises = "AttributeError"
# raises_message = "NoneType"
# cause = "only leaves keep .grad; the feature map is a non-leaf"
# fix = "fmap.retain_grad() before backward (or a tensor hook / autograd.grad)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/2677" },
#     { url = "https://github.com/nerfstudio-project/gsplat/issues/390" },
#     { url = "https://github.com/ramprs/grad-cam/issues/26" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(11)


class TinyCam(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 8, 3, padding=1))
        self.fc = nn.Linear(8, 3)

    def forward(self, img):
        fmap = self.stem(img)  #! also
        pooled = torch.relu(fmap).mean(dim=(2, 3))
        return self.fc(pooled), fmap


net = TinyCam().eval()
picture = torch.rand(1, 1, 12, 12)
scores, fmap = net(picture)  #! also
#+ fmap.retain_grad()
scores[0, scores.argmax()].backward()  #! also
alpha = fmap.grad.mean(dim=(2, 3), keepdim=True)  #! here
heat = torch.relu((alpha * fmap.detach()).sum(1))
print(heat.shape)
