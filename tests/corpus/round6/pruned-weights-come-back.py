# /// case
# title = "A hook zeroes gradients, the momentum moves the weights"
# category = "hook"
# kind = "masked-gradient-not-weight"
# kinds_also_ok = ["optimizer-state-stale"]
# severity = "warning"
# names = ["momentum", "mask", "register_hook"]
# symptom = "the pruned weights are no longer zero"
# symptom_check = "left > 0.9"
# cause = "the momentum of the dense phase moves them though their gradients are zero"
# fix = "mask the momentum as well"
# ///
import torch
import torch.nn as nn

torch.manual_seed(64)


def prune(layer, fraction):
    flat = layer.weight.detach().abs().flatten()
    limit = flat.kthvalue(int(fraction * flat.numel())).values
    mask = (layer.weight.detach().abs() > limit).float()
    layer.weight.data.mul_(mask)  #! also
    layer.weight.register_hook(lambda g: g * mask)  #! also
    return mask


model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  #! also
x = torch.randn(160, 10)
y = x[:, :2].prod(1, keepdim=True)


def run(epochs):
    for _ in range(epochs):
        for xb, yb in zip(x.split(40), y.split(40)):
            loss = nn.functional.mse_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


dense = run(5)
mask = prune(model[0], 0.6)  #! here
#+ optimizer.state[model[0].weight]["momentum_buffer"].mul_(mask)
sparse = run(5)
left = (model[0].weight != 0).float().mean().item()
print(dense, sparse, mask.mean().item(), left)
