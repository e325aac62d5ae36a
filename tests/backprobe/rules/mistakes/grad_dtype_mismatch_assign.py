import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    x = rg(3)
    x.grad = torch.ones(3, dtype=torch.double)

mistake()
