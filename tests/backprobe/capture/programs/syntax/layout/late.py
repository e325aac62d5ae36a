import torch
w = torch.ones(1, requires_grad=True)
print("late", __name__)
