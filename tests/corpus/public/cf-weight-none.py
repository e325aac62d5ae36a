# /// case
# title = "backward returns None for the weight"
# category = "custom-function"
# kind = "custom-function-missing-gradient"
# severity = "warning"
# names = ["LinearFn", "weight"]
# difficulty = "medium"
# symptom = "silent: weight keeps grad None although it requires grad"
# symptom_check = "weight.grad is None"
# cause = "the gradient of the second input was left out"
# fix = "return grad.t() @ x for the weight"
# evidence = [
#     { url = "https://github.com/huawei-noah/AdderNet/issues/20" },
#     { url = "https://github.com/evanmy/sae/issues/5" },
# ]
# ///
import torch


class LinearFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, None  #- here
#+         return grad @ weight, grad.t() @ x


torch.manual_seed(5)
weight = torch.nn.Parameter(torch.randn(3, 6) * 0.1)
bias = torch.nn.Parameter(torch.zeros(3))
opt = torch.optim.SGD([weight, bias], lr=0.1)
for _ in range(4):
    x = torch.randn(10, 6)
    loss = (LinearFn.apply(x, weight) + bias - x[:, :3]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
