# /// case
# title = "forward changes its input in place without mark_dirty"
# category = "custom-function"
# kind = "custom-function-dirty-not-marked"
# severity = "warning"
# names = ["HalveInPlace"]
# difficulty = "hard"
# symptom = "silent: the value saved by the previous op is overwritten; no error; wrong gradient"
# symptom_check = "not torch.allclose(w.grad, reference, atol=1e-6)"
# cause = "the version counter is not raised for the input (changed through .data / numpy)"
# fix = "ctx.mark_dirty(x) (autograd then reports the conflict) or work out of place"
# evidence = [
#     { url = "https://github.com/distdl/distdl/issues/199" },
#     { url = "https://github.com/pytorch/pytorch/issues/5569" },
# ]
# ///
import torch


class HalveInPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.numpy()[...] *= 0.5  #- here
        return x.view_as(x)  #-
#+         return x * 0.5

    @staticmethod
    def backward(ctx, g):
        return g * 0.5


torch.manual_seed(2)
w = torch.rand(8, requires_grad=True)
reference = torch.autograd.grad((0.5 * torch.exp(w)).sum(), w)[0]
act = torch.exp(w)
out = HalveInPlace.apply(act)
out.sum().backward()  #! also
print(w.grad, reference)
