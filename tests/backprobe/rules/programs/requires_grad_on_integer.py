"""BP105 requires-grad-on-integer."""

PROGRAMS = {
    "the numbers are made elsewhere": """
import torch

def flag(values):
    values.requires_grad = True
    return values

ages = torch.tensor([31, 40])  # <- BP105
flag(ages)
""",
    "a view of integers keeps their dtype": """
import torch
ids = torch.arange(6)  # <- BP105
rows = ids.view(2, 3)
rows.requires_grad_()
""",
    "a cast chooses the dtype": """
import torch
weights = torch.rand(4)
codes = (weights * 10).long()  # <- BP105
codes.requires_grad_(True)
""",
    "a cast inside the flagging statement": """
import torch
weights = torch.rand(4)
codes = (weights * 10).round().int().requires_grad_()  # <- BP105
""",
    "a cast of integers to other integers": """
import torch
ids = torch.arange(4)
codes = ids.int()  # <- BP105
codes.requires_grad_(True)
""",
    "a cast of integers inside the flagging statement": """
import torch
ids = torch.arange(4)
codes = ids.int().requires_grad_(True)  # <- BP105
""",
    "another tensor of integers is read in the flagging statement": """
import torch
order = torch.tensor([1, 0])
start = torch.tensor([[1, 2], [3, 4]], requires_grad=True)[order]  # <- BP105
""",
    "a parameter of a module, over several lines": """
import torch
from torch import nn

class Steps(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.steps = nn.Parameter(  # <- BP105
            torch.arange(n)
        )

Steps(3)
""",
    "a parameter made from a name": """
import torch
from torch import nn
counts = torch.randint(0, 9, (3,))  # <- BP105
rate = nn.Parameter(data=counts)
""",
    "data of another kind": """
import torch
weight = torch.ones(3, requires_grad=True)
rounded = torch.tensor([1, 2, 3])  # <- BP105
weight.data = rounded
""",
    "a batch of a loader chose no dtype by itself": """
import torch
for labels in torch.utils.data.DataLoader(torch.arange(4), batch_size=2):
    labels.requires_grad_()  # <- BP105
""",
    "the program catches it": """
import torch
try:
    torch.tensor([1, 2]).requires_grad_()
except RuntimeError as error:
    print(error)
""",
    "numbers of a list": """
import torch

def made(counts):
    scores = torch.tensor(counts).requires_grad_()  # <- BP105
    return scores

made([4, 2, 1])
""",
}
