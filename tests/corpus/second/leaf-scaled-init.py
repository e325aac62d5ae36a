# /// case
# title = "Weights scaled at creation become non-leaf; the hand-written update finds grad None"
# category = "leaf-nonleaf"
# kind = "grad-read-on-nonleaf"
# severity = "error"
# names = ["W1"]
# difficulty = "easy"
# symptom = "TypeError: unsupported operand type(s) for *: 'float' and 'NoneType' at the update"
# raises = "TypeError"
# raises_message = "NoneType"
# cause = "requires_grad=True sits on randn(), the multiplication makes W1 a non-leaf so W1.grad is never filled"
# fix = "scale first, then requires_grad_()"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/90158" },
#     { url = "https://github.com/pytorch/pytorch/issues/1479" },
# ]
# ///
import torch

gen = torch.Generator().manual_seed(3)
features = torch.randn(32, 5, generator=gen)
labels = features @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0])

W1 = torch.randn(5, generator=gen, requires_grad=True) * 0.05  #- here
#+ W1 = (torch.randn(5, generator=gen) * 0.05).requires_grad_()
b1 = torch.zeros((), requires_grad=True)

step_size = 0.1
for epoch in range(5):
    guess = features @ W1 + b1
    mse = (guess - labels).square().mean()
    mse.backward()
    with torch.no_grad():
        b1 -= step_size * b1.grad
        W1 -= step_size * W1.grad  #! also
        b1.grad = None
        W1.grad = None
print(mse.item())
