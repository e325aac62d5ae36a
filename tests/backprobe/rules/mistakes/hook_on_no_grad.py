import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    torch.ones(3).register_hook(lambda g: g)

mistake()
