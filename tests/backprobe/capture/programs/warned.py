import warnings

import torch
import torch.nn.functional as F

x = torch.ones(2, requires_grad=True)
y = x * 2
g = y.grad
z = float((y * 1).sum())
F.mse_loss(torch.ones(3, 1), torch.ones(3))
torch.tensor(x)
for _ in range(3):
    y.grad
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    y.grad
    warnings.warn("mine")
print([(str(w.message)[:40], w.lineno, w.filename[-9:], w.category.__name__) for w in seen])
warnings.showwarning = lambda message, category, filename, lineno, file=None, line=None: print(
    "shown", str(message)[:20], lineno
)
h = y.grad
del warnings.showwarning
warnings.simplefilter("error")
try:
    y.grad
except UserWarning as error:
    print("raised", error.__traceback__.tb_lineno)
y.grad
