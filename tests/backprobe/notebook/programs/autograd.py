# %%
import torch

x = torch.ones(5)
y = torch.zeros(3)
w = torch.full((5, 3), 0.1, requires_grad=True)
b = torch.zeros(3, requires_grad=True)
z = torch.matmul(x, w) + b
loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
# %%
print(f"Gradient function for z = {type(z.grad_fn).__name__}")
loss.backward()
print(w.grad.sum())
b.grad
# %%
with torch.no_grad():
    z = torch.matmul(x, w) + b
z.requires_grad, z.detach().requires_grad
# %%
inp = torch.eye(4, 5, requires_grad=True)
out = (inp + 1).pow(2).t()
out.backward(torch.ones_like(out), retain_graph=True)
out.backward(torch.ones_like(out), retain_graph=True)
inp.grad
# %%
inp.grad.zero_()
out.backward(torch.ones_like(out))
out.backward(torch.ones_like(out))
