# /// case
# title = "optimizer.step() on gradients still multiplied by the loss scale"
# category = "amp"
# kind = "gradscaler-misuse"
# severity = "warning"
# severity_by_writer = "error"
# names = ["scaler", "optimizer", "step"]
# difficulty = "easy"
# symptom = "Loss explodes to inf/NaN within a few steps."
# symptom_check = "not (losses[-1] < 20 * losses[0])"
# cause = "The loss is scaled by 1024, but optimizer.step() is called directly, so the unscaled gradients are never restored."
# fix = "Use scaler.step(optimizer) and scaler.update()."
# evidence = [{ url = "https://github.com/nerfstudio-project/nerfacc/issues/307" }, { url = "https://github.com/IAHispano/Applio/pull/860" }]
# ///
import torch
from torch import nn

torch.manual_seed(0)
features = torch.randn(300, 10)
target = features[:, :2].prod(1, keepdim=True) + features[:, 2:3]
model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)  #! also

losses = []
for step in range(20):
    idx = torch.randint(0, 300, (64,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pred = model(features[idx])
    loss = nn.functional.mse_loss(pred.float(), target[idx])
    optimizer.zero_grad()
    scaler.scale(loss).backward()  #! here
    optimizer.step()  #- here
#+     scaler.step(optimizer)
#+     scaler.update()
    losses.append(loss.item())
print(losses[0], losses[-1])
