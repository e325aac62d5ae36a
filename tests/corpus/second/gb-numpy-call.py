# /// case
# title = ".numpy() on a tensor that requires grad"
# category = "graph-break"
# kind = "numpy-on-tracked-tensor"
# severity = "error"
# names = ["preds"]
# difficulty = "easy"
# symptom = "RuntimeError: Can't call numpy() on Tensor that requires grad"
# raises = "RuntimeError"
# raises_message = "Can't call numpy() on Tensor that requires grad"
# cause = "NumPy cannot track history; torch refuses"
# fix = "preds.detach().numpy() for reporting"
# evidence = [
#     { url = "https://deepinout.com/pytorch/pytorch-questions/75_pytorch_runtime_error_element_0_of_tensors_does_not_require_grad_and_does_not_have_a_grad_fn.html" },
# ]
# ///
import torch
import numpy as np

rng = np.random.default_rng(0)
X = torch.from_numpy(rng.normal(size=(20, 3))).float()
slope = torch.zeros(3, requires_grad=True)
y = X @ torch.tensor([0.2, 0.4, 0.6])

for i in range(3):
    preds = X @ slope
    cost = ((preds - y) ** 2).mean()
    cost.backward()
    with torch.no_grad():
        slope -= 0.1 * slope.grad
        slope.grad.zero_()
    report = np.corrcoef(preds.numpy(), y.numpy())[0, 1] if i else 0.0  #- here
#+     report = np.corrcoef(preds.detach().numpy(), y.numpy())[0, 1] if i else 0.0
    print(i, cost.item(), report)
