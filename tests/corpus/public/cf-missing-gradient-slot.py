# /// case
# title = "backward returns one gradient, forward took two inputs"
# category = "custom-function"
# kind = "custom-function-gradient-count"
# severity = "error"
# names = ["ClipSTE"]
# difficulty = "easy"
# symptom = "RuntimeError: function ClipSTEBackward returned an incorrect number of gradients (expected 2, got 1)"
# raises = "RuntimeError"
# raises_message = "returned an incorrect number of gradients"
# cause = "one gradient (or None) per forward input"
# fix = "return g, None"
# evidence = [
#     { url = "https://github.com/huawei-noah/AdderNet/issues/21" },
#     { url = "https://github.com/1zb/pytorch-image-comp-rnn/issues/4" },
#     { url = "https://github.com/deepseek-ai/TileKernels/pull/10" },
# ]
# ///
import torch


class ClipSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t, bound):
        return t.clamp(-bound, bound)

    @staticmethod
    def backward(ctx, g):
        return g  #- here
#+         return g, None


torch.manual_seed(0)
w = torch.randn(5, requires_grad=True)
out = ClipSTE.apply(w * 2, 1.0)
out.pow(2).sum().backward()  #! also
print(w.grad)
