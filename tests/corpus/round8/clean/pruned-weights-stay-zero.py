import torch
import torch.nn as nn
import torch.nn.functional as F


def prune(layer, share):
    """Zeroes the smallest weights and keeps their gradients at zero from then on."""
    threshold = layer.weight.detach().abs().flatten().quantile(share)
    mask = (layer.weight.detach().abs() > threshold).float()
    with torch.no_grad():
        layer.weight.mul_(mask)
    layer.weight.register_hook(lambda grad: grad * mask)
    return mask


def train(net, optimizer, x, y, epochs):
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(25):
            loss = F.cross_entropy(net(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(20)
x = torch.randn(100, 12)
y = x[:, :4].argmax(1)
net = nn.Sequential(nn.Linear(12, 40), nn.ReLU(), nn.Linear(40, 4))
print("dense", train(net, torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9), x, y, epochs=3))
masks = [prune(layer, 0.6) for layer in net if isinstance(layer, nn.Linear)]
print("sparse", train(net, torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9), x, y, epochs=3))
for mask, layer in zip(masks, (net[0], net[2])):
    print(mask.mean().item(), bool((layer.weight[mask == 0] == 0).all()))
