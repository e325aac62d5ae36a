import torch

torch.manual_seed(0)
theta = torch.zeros(4, 4, requires_grad=True)
with torch.no_grad():
    theta += torch.eye(4)
print((theta @ torch.ones(4)).sum())
