# /// case
# title = "requires_grad on a tensor built from Python ints"
# category = "requires-grad"
# kind = "requires-grad-on-integer"
# severity = "error"
# names = ["coeffs"]
# difficulty = "easy"
# symptom = "RuntimeError: Only Tensors of floating point and complex dtype can require gradients"
# raises = "RuntimeError"
# raises_message = "floating point"
# cause = "torch.tensor([1, 2]) infers int64; only float/complex tensors can carry gradients"
# fix = "write floats or dtype=torch.float32"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/53466" },
#     { url = "https://github.com/yunjey/pytorch-tutorial/pull/128" },
# ]
# ///
import torch

coeffs = torch.tensor([3, -1, 2], requires_grad=True)  #- here
#+ coeffs = torch.tensor([3.0, -1.0, 2.0], requires_grad=True)
grid = torch.linspace(-1, 1, 21)
curve = coeffs[0] + coeffs[1] * grid + coeffs[2] * grid**2
wanted = torch.cos(grid)
residual = (curve - wanted).square().sum()
residual.backward()
print(coeffs.grad)
