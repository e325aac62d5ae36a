import torch
from torch import nn

torch.manual_seed(5)
cnn = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 4)).eval()
mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)


def saliency(model, image):
    image = image.clone().requires_grad_()
    tensor = ((image - mean) / std).unsqueeze(0)
    scores = model(tensor)
    scores[0, scores.argmax()].backward()
    return image.grad


heat = None
for _ in range(3):
    picture = torch.rand(3, 12, 12)
    heat = saliency(cnn, picture)
    if heat is not None:
        print(heat.abs().max().item())
