# /// case
# category = "gradient"
# kind = "hook-changes-size"
# severity = "error"
# names = ["per_channel", "response"]
# ///
#-
import torch
from torch import nn


class Saliency:
    def __init__(self, net):
        self.net = net
        self.weights = None

    def per_channel(self, grad):
        self.weights = grad.mean((2, 3))
        return self.weights  #- here

    def __call__(self, image):
        response = self.net(image)
        response.register_hook(self.per_channel)  #! also
        response.square().sum().backward()  #! also
        return (self.weights[..., None, None] * response).sum(1)


torch.manual_seed(0)
print(Saliency(nn.Conv2d(1, 3, 3))(torch.rand(1, 1, 6, 6)).shape)
