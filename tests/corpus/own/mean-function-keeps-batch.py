# /// case
# category = "gradient"
# kind = "custom-function-gradient-shape"
# severity = "error"
# names = ["BatchMean", "x"]
# ///
#-
import torch
from torch import nn
from torch.autograd import Function


class BatchMean(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rows = x.shape[0]
        return x.mean(0)

    @staticmethod
    def backward(ctx, grad):
        spread = (grad / ctx.rows).unsqueeze(0).repeat(ctx.rows + 1, 1)  #-
#+         spread = (grad / ctx.rows).unsqueeze(0).repeat(ctx.rows, 1)
        return spread  #! here


torch.manual_seed(0)
layer = nn.Linear(3, 2)
opt = torch.optim.SGD(layer.parameters(), lr=0.1)
for batch in torch.randn(2, 5, 3):
    centre = BatchMean.apply(layer(batch))
    opt.zero_grad()
    centre.square().sum().backward()  #! also
    opt.step()
print(layer.bias)
