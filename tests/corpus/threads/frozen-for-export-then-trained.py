# /// case
# title = "A helper freezes the model to export it and training goes on"
# category = "cause"
# kind = "root-without-history"
# kinds_also_ok = ["all-parameters-frozen", "freeze-without-effect"]
# severity = "error"
# names = ["requires_grad", "model"]
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "snapshot() freezes the live model"
# fix = "freeze a copy"
# evidence = [
#     { url = "https://github.com/sniklaus/pytorch-pwc/issues/27", title = "A backward issue" },
#     { url = "https://github.com/huggingface/transformers/issues/23170", title = "Gradient Checkpointing Fails with frozen parameters" },
# ]
# ///
import copy

import torch
from torch import nn

torch.manual_seed(1)


def snapshot(model):
    """A frozen copy for serving."""
    frozen = model.eval()  #- also
#+     frozen = copy.deepcopy(model).eval()
    for p in frozen.parameters():
        p.requires_grad = False  #! here
    return frozen


def fit(model, batches, optimizer):
    model.train()
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()  #! also
        optimizer.step()
    return loss.item()


model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters())
batches = [(torch.randn(16, 3), torch.randn(16, 1)) for _ in range(3)]
served = []
for epoch in range(3):
    fit(model, batches, optimizer)
    served.append(snapshot(model))
print(len(served), copy.__name__)
