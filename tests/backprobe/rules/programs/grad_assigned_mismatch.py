"""BP230 grad-assigned-mismatch."""

PROGRAMS = {
    "a mean over everything": """
import torch
from torch import nn
server, clients = nn.Linear(3, 2), [nn.Linear(3, 2) for _ in range(2)]
for client in clients:
    client(torch.ones(4, 3)).sum().backward()
for at, parameter in enumerate(server.parameters()):
    parts = [list(client.parameters())[at].grad for client in clients]
    parameter.grad = torch.stack(parts).mean()  # <- BP230
""",
    "a number": """
import torch
weight = torch.ones(3, requires_grad=True)
weight.grad = 0.5  # <- BP230
""",
    "an expression of another dtype": """
import torch
weight = torch.ones(3, requires_grad=True)
noise = torch.ones(3, dtype=torch.float64)
weight.grad = noise + 1  # <- BP230
""",
    "a call that gives another dtype": """
import torch
weight = torch.ones(3, requires_grad=True)
weight.grad = torch.ones(3, dtype=torch.float64)  # <- BP230
""",
    "the program catches it": """
import torch
weight = torch.ones(3, requires_grad=True)
try:
    weight.grad = torch.ones(2)
except RuntimeError as error:
    print(error)
""",
}
