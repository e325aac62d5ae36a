import torch

w = (torch.ones(3) * 0.1).requires_grad_()
x = torch.tensor([1.0, 2.0, 3.0])
loss = (w * x).sum()
loss.backward()
print(w.grad)
