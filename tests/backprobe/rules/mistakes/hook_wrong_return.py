import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    x = rg(3)
    x.register_hook(lambda g: torch.ones(2))
    (x * 2).sum().backward()

mistake()
