import torch
from torch import nn

torch.manual_seed(0)
extractor = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval().requires_grad_(False)
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12)


def gram(f):
    c = f.flatten(2)
    return c @ c.transpose(1, 2) / c.numel()


with torch.no_grad():
    want_content, want_style = extractor(content), gram(extractor(style))
image = content.clone().requires_grad_()
opt = torch.optim.LBFGS([image], max_iter=4)
trace = []


def closure():
    opt.zero_grad()
    f = extractor(image)
    loss = (f - want_content).pow(2).mean() + 100 * (gram(f) - want_style).pow(2).mean()
    loss.backward()
    trace.append(loss.item())
    return loss


for _ in range(2):
    opt.step(closure)
print(trace[0], trace[-1])
