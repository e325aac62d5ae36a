import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    class M(torch.autograd.Function):

        @staticmethod
        def forward(c, x):
            return x * 1
    M.apply(rg(3)).sum().backward()

mistake()
