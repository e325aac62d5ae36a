"""BP108 flag-change-on-non-leaf."""

PROGRAMS = {
    "the attribute is set": """
import torch
weight = torch.ones(3, requires_grad=True)
hidden = weight.exp()
hidden.requires_grad = False  # <- BP108
""",
    "in a function, of what it was given": """
import torch

def frozen(features):
    features.requires_grad_(False)  # <- BP108
    return features

layer = torch.nn.Linear(3, 2)
frozen(layer(torch.ones(4, 3)))
""",
    "of an element": """
import torch
weight = torch.ones(3, requires_grad=True)
states = [weight * 2, weight * 3]
states[1].requires_grad = False  # <- BP108
""",
    "the program catches it": """
import torch
hidden = torch.ones(3, requires_grad=True) * 2
try:
    hidden.requires_grad = False
except RuntimeError as error:
    print(error)
""",
}
