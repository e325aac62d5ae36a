# /// case
# title = "zero_grad() stands in the epoch loop, not in the batch loop"
# category = "cause"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["zero_grad", "optimizer"]
# symptom = "the gradient at the epoch's end is the sum over all of its batches"
# symptom_check = "norms[-1] > 3 * last"
# cause = "the clear is one loop too far out"
# fix = "clear for each batch"
# evidence = [
#     { url = "https://github.com/salesforce/corr_based_prediction/issues/1", title = "Does the model need accumulate the gradients?" },
#     { url = "https://github.com/pytorch/pytorch/issues/47175", title = "[feature request] Show warning if optimizer.zero_grad() was not called before optimizer.step()" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(10)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
loss_fn = nn.MSELoss()
loader = [(torch.rand(10, 6), torch.randn(10, 1) + 5) for _ in range(8)]

norms = []
for epoch in range(3):
    model.train()
    optimizer.zero_grad()  #- here
    for features, target in loader:
#+         optimizer.zero_grad()
        loss = loss_fn(model(features), target)
        loss.backward()  #! also
        optimizer.step()  #! also
        norms.append(model.weight.grad.norm().item())
x, y = loader[-1]
last = torch.autograd.grad(loss_fn(model(x), y), model.weight)[0].norm().item()
print(norms[-1], last)
