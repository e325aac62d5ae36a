import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(54, 2))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
X = torch.randn(40, 1, 8, 8)
Y = (X[:, 0, :4].mean((1, 2)) > 0).long()
for _ in range(8):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(net(X), Y)
    loss.backward()
    opt.step()

net.eval()
img = X[:1].clone()
total = torch.zeros_like(img)
for _ in range(10):
    noisy = (img + 0.1 * torch.randn_like(img)).requires_grad_()
    score = net(noisy)[0, Y[0]]
    net.zero_grad()
    score.backward()
    total += noisy.grad.abs()
saliency = total / 10
img.requires_grad_(True)
scores = net(img)
scores[0, scores.argmax()].backward()
vanilla = img.grad.data.abs().max(dim=1)[0]
print(saliency[0, 0, :4].mean().item(), saliency[0, 0, 4:].mean().item(), vanilla.shape)
