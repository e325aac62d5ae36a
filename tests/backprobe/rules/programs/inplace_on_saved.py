"""BP401 inplace-on-saved."""

PROGRAMS = {
    "one of two changes has no other form: no fix is offered": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y[0] = 0.0  # <- BP401
y.mul_(2)
y.sum().backward()
""",
    "a method without an underscore's twin": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.zero_()  # <- BP401
y.sum().backward()
""",
    "an attribute": """
import torch

class Cell:
    def __init__(self, x):
        self.y = x.exp()
        self.y *= 2  # <- BP401

x = torch.ones(3, requires_grad=True)
Cell(x).y.sum().backward()
""",
    "augmented assignment": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y += 1  # <- BP401
y.sum().backward()
""",
    "a store into a slice": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y[0] = 0.0  # <- BP401
y.sum().backward()
""",
    "through a view": """
import torch
x = torch.ones(4, requires_grad=True)
y = x.exp()
row = y.view(2, 2)
row.mul_(2)  # <- BP401
y.sum().backward()
""",
    "several changes: the first one behind the saving": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.mul_(2)  # <- BP401
y.add_(1)
loss = y.sum()
z = torch.ones(3)
z.add_(1)
loss.backward()
""",
    "another tensor of that shape is changed as often": """
import torch
x = torch.ones(3, requires_grad=True)
free = x + 1
y = x.exp()
free.mul_(2)
y.mul_(2)  # <- BP401
free.mul_(1)
(y.sum() + free.sum()).backward()
""",
    "a later change is not the cause": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y.mul_(2)  # <- BP401
loss = y.sum()
try:
    loss.backward()
finally:
    with torch.no_grad():
        y.add_(1)
""",
    "the right hand side needs parentheses": """
import torch
x = torch.ones(3, requires_grad=True)
y = x.exp()
y *= x + 1  # <- BP401
y.sum().backward()
""",
}
