import copy
import torch

def rg(*sizes):
    return torch.randn(*sizes, requires_grad=True)

def mistake():
    class M(torch.autograd.Function):

        @staticmethod
        def forward(c, x, y):
            return x * y

        @staticmethod
        def backward(c, g):
            return g
    M.apply(rg(3), rg(3)).sum().backward()

mistake()
