import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    (rg(3) * 2).register_post_accumulate_grad_hook(lambda g: g)

mistake()
