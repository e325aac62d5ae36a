# /// case
# title = "The remainder of an epoch is accumulated and cleared unread"
# category = "uncovered"
# kind = "gradient-cleared-before-step"
# kinds_also_ok = ["accumulation-window-dropped", "missing-optimizer-step"]
# severity = "warning"
# names = ["zero_grad", "accumulation_steps"]
# symptom = "two of ten batches per epoch never reach a step"
# symptom_check = "used < 20"
# cause = "zero_grad() at the epoch's start throws the partial window away"
# fix = "step at the loader's end too"
# evidence = [
#     { url = "https://github.com/timoschick/pet/issues/36", title = "Missing optimizer step" },
#     { url = "https://github.com/ultralytics/ultralytics/pull/11217", title = "fix double zero_grad call messing up gradient accumulation" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Linear(7, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = [(torch.randn(8, 7), torch.randint(0, 2, (8,))) for _ in range(10)]
accumulation_steps = 4
used = pending = 0
for epoch in range(2):
    optimizer.zero_grad()  #! here
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y) / accumulation_steps
        loss.backward()  #! also
        pending += 1
        if (step + 1) % accumulation_steps == 0:  #- here
#+         if (step + 1) % accumulation_steps == 0 or step + 1 == len(loader):
            optimizer.step()  #! also
            optimizer.zero_grad()
            used, pending = used + pending, 0
    pending = 0
print(used)
