# /// case
# title = "A loss helper returns .item() and the caller makes a tensor of it"
# category = "helper"
# kind = "graph-break-item"
# kinds_also_ok = ["root-without-history", "requires-grad-forced-on-loss"]
# severity = "error"
# names = ["compute_loss", "item"]
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "the helper gives back a float"
# fix = "return the tensor"
# evidence = [
#     { url = "https://github.com/Lightning-AI/lightning-thunder/pull/1481", title = "Register grad for torch.Tensor.item" },
#     { url = "https://github.com/huggingface/torchMoji/issues/21", title = "loss don't go down when finetune and about requires_grad option in backward()" },
# ]
# ///
import torch
from torch import nn


def compute_loss(model, batch, weights):
    x, y = batch
    per_class = nn.functional.cross_entropy(model(x), y, weight=weights)
    smooth = model.weight.pow(2).sum()
    return (per_class + 1e-4 * smooth).item()  #- here
#+     return per_class + 1e-4 * smooth


def main():
    torch.manual_seed(0)
    model = nn.Linear(10, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = torch.tensor([1.0, 2.0, 2.0])
    for _ in range(5):
        batch = torch.randn(16, 10), torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        loss = torch.as_tensor(compute_loss(model, batch, weights))  #- also
#+         loss = compute_loss(model, batch, weights)
        loss.backward()  #! also
        optimizer.step()


main()
