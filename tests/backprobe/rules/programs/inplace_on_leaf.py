"""BP403 inplace-on-leaf."""

PROGRAMS = {
    "parameters in a loop": """
import torch
net = torch.nn.Linear(2, 1)
net(torch.ones(3, 2)).sum().backward()
for p in net.parameters():
    p -= 0.1 * p.grad  # <- BP403
""",
    "an element of a list": """
import torch
weights = [torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)]
(weights[0] * weights[1]).sum().backward()
weights[0] -= weights[0].grad  # <- BP403
""",
    "a method, where torch is imported under another name": """
import torch as t
w = t.ones(3, requires_grad=True)
w.mul_(2)  # <- BP403
""",
    "a function that works in place": """
import torch
import torch.nn.functional as F
w = torch.ones(3, requires_grad=True)
F.relu(w, inplace=True)  # <- BP403
""",
}
