# /// case
# title = "The gradient of an activation is read"
# category = "leaf"
# kind = "grad-of-non-leaf"
# kinds_also_ok = ["missing-retain-grad"]
# severity = "error"
# names = ["maps", "retain_grad"]
# symptom = "the gradient is None"
# raises = "AttributeError"
# raises_message = "NoneType"
# cause = "an activation is no leaf and does not keep its gradient"
# fix = "retain_grad"
# ///
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        self.maps = self.conv(x)  #! here
#+         self.maps.retain_grad()
        return self.head(self.maps.mean((2, 3)))


def grad_cam(net, image, label=None):
    logits = net(image)
    label = logits.argmax(1) if label is None else label
    net.zero_grad()
    logits.gather(1, label[:, None]).sum().backward()
    weights = net.maps.grad.mean((2, 3), keepdim=True)  #! also
    cam = (weights * net.maps).sum(1).relu()
    return (cam / cam.amax((1, 2), keepdim=True).clamp(min=1e-6)).detach()


torch.manual_seed(3)
net = Net().eval()
images = torch.randn(2, 1, 12, 12)
cam = grad_cam(net, images)
print(cam.shape, cam.max().item())
