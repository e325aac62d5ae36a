# /// case
# title = "The optimizer is given a computed tensor"
# category = "optimizer-wiring"
# kind = "optimizer-given-nonleaf"
# severity = "error"
# names = ["style"]
# difficulty = "easy"
# symptom = "ValueError: can't optimize a non-leaf Tensor"
# raises = "ValueError"
# raises_message = "can't optimize a non-leaf Tensor"
# cause = "the tensor is the result of an operation"
# fix = "make the leaf, then optimise the leaf"
# evidence = [
#     { url = "https://forum.pyro.ai/t/try-to-understand-param-with-constraints/4761" },
#     { url = "https://duoke360.com/post/34448" },
# ]
# ///
import torch

torch.manual_seed(1)
content = torch.rand(3, 16, 16)
noise = torch.randn(3, 16, 16, requires_grad=True)  #-
style = 0.6 * content + 0.4 * noise  #- also
#+ style = (0.6 * content + 0.4 * torch.randn(3, 16, 16)).requires_grad_()
brush = torch.optim.LBFGS([style], lr=0.5, max_iter=4)  #! here
goal = content.flip(2)


def closure():
    brush.zero_grad()
    cost = (style - goal).pow(2).mean()
    cost.backward()
    return cost


print(brush.step(closure).item())
