# /// case
# title = "The schedule advances in each micro-batch"
# category = "optimizer"
# kind = "scheduler-step-frequency"
# kinds_also_ok = ["scheduler-too-fast"]
# severity = "warning"
# names = ["scheduler", "step", "accumulate"]
# symptom = "warm-up and decay run four times too fast"
# symptom_check = "scheduler.last_epoch > n_updates"
# cause = "scheduler.step() is not under the condition of optimizer.step()"
# fix = "step both together"
# evidence = [
#     { url = "https://github.com/huggingface/accelerate/issues/963", title = "Scheduler always steps when training with gradient accumulation" },
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/1476", title = "Learning rate scheduler should step after each optimizer step" },
#     { url = "https://github.com/h2oai/h2o-llmstudio/issues/663", title = "[BUG] Scheduler should consider gradient accumulation while assigning `epoch_steps`?" },
# ]
# ///
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR


def linear_with_warmup(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return (step + 1) / warmup
        return max(0.0, (total - step) / max(1, total - warmup))
    return LambdaLR(optimizer, factor)


torch.manual_seed(22)
accumulate, epochs, micro_batches = 4, 2, 16
model = nn.Sequential(nn.Embedding(60, 16), nn.Flatten(), nn.Linear(16 * 6, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
total_updates = epochs * micro_batches // accumulate
scheduler = linear_with_warmup(optimizer, warmup=2, total=total_updates)
data = [(torch.randint(0, 60, (8, 6)), torch.randint(0, 2, (8,))) for _ in range(micro_batches)]

n_updates, rates = 0, []
for epoch in range(epochs):
    model.train()
    for step, (ids, label) in enumerate(data):
        loss = nn.functional.cross_entropy(model(ids), label) / accumulate
        loss.backward()
        if (step + 1) % accumulate == 0:
            rates.append(scheduler.get_last_lr()[0])
            optimizer.step()
            optimizer.zero_grad()
            n_updates += 1
        scheduler.step()  #- here
#+             scheduler.step()
print(rates)
