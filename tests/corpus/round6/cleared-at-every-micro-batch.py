# /// case
# title = "Gradients are cleared within the window"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["gradient-cleared-before-step", "lost-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "n_micro"]
# symptom = "each step has the gradient of one micro-batch, a quarter as large as it should be"
# symptom_check = "model[0].weight.grad is not None and (model[0].weight.grad.abs().sum(1) > 0).sum().item() == used"
# cause = "zero_grad runs for each micro-batch"
# fix = "clear after the step"
# evidence = [
#     { url = "https://github.com/eriklindernoren/PyTorch-YOLOv3/pull/313", title = "Fix a bug for gradient accumulation" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(14)
n_micro = 4
model = nn.Sequential(nn.Embedding(30, 12), nn.Flatten(), nn.Linear(12 * 6, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(0, 30, (64, 6))
target = (ids.sum(1) > 87).long()


def micro_batches():
    order = torch.randperm(len(ids))
    return order.chunk(16)


seen_rows = 0
for epoch in range(2):
    for step, rows in enumerate(micro_batches()):
        optimizer.zero_grad()  #- here
        out = model(ids[rows])
        loss = nn.functional.cross_entropy(out, target[rows]) / n_micro
        loss.backward()
        if (step + 1) % n_micro == 0:
            touched = (model[0].weight.grad.abs().sum(1) > 0).sum().item()
            seen_rows = max(seen_rows, touched)
            optimizer.step()  #! also
#+             optimizer.zero_grad()
    print(epoch, loss.item() * n_micro, seen_rows)
used = ids[rows].unique().numel()
