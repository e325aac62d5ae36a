import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    y = rg(3) * 2
    y.requires_grad_(False)

mistake()
