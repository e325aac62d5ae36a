# /// case
# title = "OneCycleLR sized for epochs and stepped per batch"
# category = "uncovered"
# kind = "scheduler-past-its-end"
# kinds_also_ok = ["scheduler-per-batch"]
# severity = "error"
# names = ["OneCycleLR", "total_steps"]
# symptom = "ValueError: Tried to step 7 times"
# raises = "ValueError"
# raises_message = "Tried to step"
# cause = "total_steps counts epochs"
# fix = "epochs * len(loader)"
# evidence = [
#     { url = "https://github.com/A4Bio/PiFold/issues/6", title = "runtime error with batch_size=2" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(8)
epochs, loader = 6, [(torch.randn(4, 3), torch.randn(4, 2)) for _ in range(5)]
net = nn.Linear(3, 2)
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(
    opt,
    max_lr=1e-2,
    total_steps=epochs,  #- here
#+     total_steps=epochs * len(loader),
)
for epoch in range(epochs):
    for x, y in loader:
        loss = nn.functional.l1_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()  #! here
    print(epoch, sched.get_last_lr())
