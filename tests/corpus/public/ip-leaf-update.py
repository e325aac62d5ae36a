# /// case
# title = "w -= lr * w.grad without no_grad"
# category = "in-place"
# kind = "inplace-on-leaf"
# severity = "error"
# names = ["w"]
# difficulty = "easy"
# symptom = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation"
# raises = "RuntimeError"
# raises_message = "a leaf Variable that requires grad is being used in an in-place operation"
# cause = "in-place change of a leaf under grad mode is refused"
# fix = "with torch.no_grad():"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/leaf-variable-was-used-in-an-inplace-operation/308/2" },
#     { url = "https://github.com/BaiTheBest/SparseLLM/issues/13" },
#     { url = "https://github.com/NVlabs/VILA/pull/199" },
# ]
# ///
import torch

torch.manual_seed(2)
X = torch.randn(40, 3)
t = X @ torch.tensor([2.0, 0.0, -1.0]) + 0.1 * torch.randn(40)
w = torch.zeros(3, requires_grad=True)
for i in range(20):
    sq = (X @ w - t).pow(2).mean()
    sq.backward()
    w -= 0.1 * w.grad  #- here
#+     with torch.no_grad():
#+         w -= 0.1 * w.grad
    w.grad.zero_()
print(w)
