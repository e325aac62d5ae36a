"""BP101 non-leaf-grad-read."""

PROGRAMS = {
    "a sibling output of the one that was differentiated": """
import torch
x = torch.ones(2, requires_grad=True)
a, b = x.unbind()
a.backward()
print(b.grad)
""",
    "a gradient of None is replaced where it is read": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
shown = hidden.grad or 0
print(hidden.grad is not None and hidden.grad.norm())
""",
    "a gradient is tested as it is named": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
if (g := hidden.grad) is not None:
    print(g)
if g := hidden.grad:
    print(g)
""",
    "a read behind a test of the same gradient": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for t in (x, hidden):
    if t.grad is None:
        print("none")
    print(t.grad)
""",
    "a test that skips the tensor": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for t in (x, hidden):
    if t.grad is None:
        continue
    print(t.grad.norm())
""",
    "a test of another gradient guards nothing": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2  # <- BP101
hidden.sum().backward()
if x.grad is None:
    print("none")
print(hidden.grad)
""",
    "inputs= stores it in a non-leaf": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward(inputs=[hidden])
print(hidden.grad)
""",
    "a leaf is its own root": """
import torch
x = torch.ones((), requires_grad=True)
x.backward()
x.grad = None
print(x.grad)
""",
    "retained after one call, read after the next": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward(retain_graph=True)
hidden.retain_grad()
hidden.sum().backward()
print(hidden.grad)
""",
    "the read is in a branch for what is no leaf": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
if not hidden.is_leaf:
    print(hidden.grad)
""",
    "only autograd.grad went through, then backward elsewhere": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
torch.autograd.grad(hidden.sum(), x)
(x * 3).sum().backward()
print(hidden.grad)
""",
    "the call does not come through the tensor": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
x.sum().backward()
print(hidden.grad)
""",
    "the call raised before it came there": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x.exp()
out = hidden * 2
hidden.add_(1)
try:
    hidden.exp().sum().backward(torch.ones(5))
except RuntimeError:
    pass
print(hidden.grad)
""",
    "a root is read": """
import torch
x = torch.ones(3, requires_grad=True)
loss = (x * 2).sum()  # <- BP101
loss.backward()
print(loss.grad)
""",
    "a read in a loop is one finding": """
import torch
x = torch.ones(3, requires_grad=True)
for _ in range(4):
    hidden = x * 2  # <- BP101
    hidden.sum().backward()
    print(hidden.grad)
""",
    "a condition reads the gradient itself": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2  # <- BP101
hidden.sum().backward()
try:
    if hidden.grad.norm() > 1:
        print("large")
except AttributeError:
    print("none")
""",
    "a view, bound under another name later": """
import torch
x = torch.ones(3, requires_grad=True)
first = x[0]  # <- BP101
again = first
again.backward()
print(first.grad)
""",
    "a leaf whose gradient is None is not this rule's": """
import torch
x = torch.ones(3, requires_grad=True)
y = torch.ones(3, requires_grad=True)
x.sum().backward()
print(y.grad)
""",
    "None is told by comparison in an expression": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
print(hidden.grad is None)
""",
    "None is handled after it was bound": """
import torch
x = torch.ones(3, requires_grad=True)
hidden = x * 2
hidden.sum().backward()
for tensor in (x, hidden):
    grad = tensor.grad
    if grad is None:
        continue
    print(grad)
""",
    "the flag is set to False in the factory": """
import torch
w = torch.ones(3, requires_grad=False).double().requires_grad_()
moved = w.float()  # <- BP101
moved.sum().backward()
print(moved.grad)
""",
}
