import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    copy.deepcopy(rg(3) * 2)

mistake()
