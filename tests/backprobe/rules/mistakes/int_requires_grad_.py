import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    torch.tensor([1, 2]).requires_grad_()

mistake()
