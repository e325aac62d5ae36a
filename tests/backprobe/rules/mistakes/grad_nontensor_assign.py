import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    x = rg(3)
    x.grad = 1.0

mistake()
