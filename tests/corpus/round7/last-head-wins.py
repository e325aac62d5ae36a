# /// case
# title = "The loss of each head overwrites that of the head before"
# category = "loss"
# kind = "loss-overwritten"
# kinds_also_ok = ["loss-term-dropped", "parameter-without-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["loss", "heads"]
# symptom = "only the last head is trained"
# symptom_check = 'model.heads["age"].weight.grad is None and model.heads["smoker"].weight.grad is not None'
# cause = "= where += was meant"
# fix = "add"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

TASKS = {"age": F.mse_loss, "income": F.smooth_l1_loss, "smoker": F.binary_cross_entropy_with_logits}


class MultiTask(nn.Module):
    def __init__(self, n_in, width, tasks):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(n_in, width), nn.ReLU())
        self.heads = nn.ModuleDict({task: nn.Linear(width, 1) for task in tasks})

    def forward(self, x):
        h = self.shared(x)
        return {task: head(h).squeeze(-1) for task, head in self.heads.items()}


def synthetic(n):
    x = torch.randn(n, 6)
    return x, {"age": x[:, 0] + x[:, 1], "income": x[:, 2].exp(), "smoker": (x[:, 3] > 0).float()}


torch.manual_seed(76)
x, targets = synthetic(90)
model = MultiTask(6, 20, TASKS)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
weights = {"age": 1.0, "income": 0.5, "smoker": 2.0}
for epoch in range(3):
    for rows in torch.randperm(90).split(18):
        outputs = model(x[rows])
        loss = torch.zeros(())
        for task, criterion in TASKS.items():
            loss = weights[task] * criterion(outputs[task], targets[task][rows])  #- here
#+             loss = loss + weights[task] * criterion(outputs[task], targets[task][rows])
        optimizer.zero_grad()
        loss.backward()  #! also
        optimizer.step()
    print(epoch, loss.item())
