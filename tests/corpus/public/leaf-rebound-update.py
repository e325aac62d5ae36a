# /// case
# title = "theta = theta - lr*grad re-binds the name to a non-leaf: the second step has no gradient"
# category = "leaf-nonleaf"
# kind = "leaf-lost-by-rebinding"
# severity = "error"
# names = ["theta"]
# difficulty = "easy"
# symptom = "TypeError on the second iteration (theta.grad is None), preceded by the non-leaf UserWarning"
# raises = "TypeError"
# raises_message = "NoneType"
# cause = "the out-of-place update outside no_grad() builds a graph and binds a non-leaf tensor to the name"
# fix = "update in place under torch.no_grad() and clear .grad"
# evidence = [
#     { url = "https://discuss.pytorch.org/t/leaf-variable-was-used-in-an-inplace-operation/308/2" },
#     { url = "https://github.com/BaiTheBest/SparseLLM/issues/13" },
# ]
# ///
import torch


def rosenbrock(v):
    return (1 - v[0]) ** 2 + 100 * (v[1] - v[0] ** 2) ** 2


theta = torch.tensor([-1.2, 1.0], requires_grad=True)
rate = 1e-3
trace = []
for it in range(10):
    value = rosenbrock(theta)
    value.backward()
    theta = theta - rate * theta.grad  #- here
#+     with torch.no_grad():
#+         theta -= rate * theta.grad
#+     theta.grad = None
    trace.append(value.item())
print(trace[0], trace[-1])
