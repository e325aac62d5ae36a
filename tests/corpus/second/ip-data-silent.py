# /// case
# title = ".data.clamp_() on a saved activation: no error, wrong gradient"
# category = "in-place"
# kind = "silent-inplace-through-data"
# severity = "warning"
# names = ["probs"]
# difficulty = "hard"
# symptom = "silent: the gradient differs from the true one"
# symptom_check = "not torch.allclose(w.grad, reference, atol=1e-5)"
# cause = ".data changes are not counted by the version counter; tanh's backward then uses the changed output"
# fix = "probs = probs.clamp(...)"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/6990" },
#     { url = "https://github.com/pytorch/pytorch/issues/7860" },
# ]
# ///
import torch

torch.manual_seed(16)
w = torch.randn(6, requires_grad=True)
obs = torch.randn(20, 6) * 2


def model(weight):
    return torch.tanh(obs @ weight)


clipped = model(w).clamp(-0.5, 0.5)
reference = torch.autograd.grad(clipped.sum(), w)[0]

probs = model(w)
probs.data.clamp_(-0.5, 0.5)  #- here
#+ probs = probs.clamp(-0.5, 0.5)
total = probs.sum()
total.backward()  #! also
print((w.grad - reference).abs().max())
