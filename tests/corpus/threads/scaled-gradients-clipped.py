# /// case
# title = "Clipping before unscale_"
# category = "uncovered"
# kind = "clip-before-unscale"
# kinds_also_ok = ["gradscaler-misuse"]
# severity = "warning"
# names = ["clip_grad_norm_", "scaler"]
# symptom = "the step's gradient is smaller than one thousandth of the threshold"
# symptom_check = "moved < 1e-3"
# cause = "the scaled gradient is clipped to 1 and then divided by the scale"
# fix = "scaler.unscale_ first"
# evidence = [
#     { url = "https://github.com/milesial/Pytorch-UNet/issues/468", title = "Gradients are clipped before the unscaling" },
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/issues/9599", title = "Clip norm after scaler.unscale_ in native fp16 training" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(6)
unet = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
optimizer = torch.optim.SGD(unet.parameters(), lr=0.5)
grad_scaler = torch.amp.GradScaler("cpu", init_scale=2.0**14)
criterion = nn.BCEWithLogitsLoss()
moved = 0.0
for step in range(4):
    images, masks = torch.rand(2, 1, 8, 8), torch.zeros(2, 1, 8, 8)
    with torch.autocast("cpu", enabled=False):
        loss = criterion(unet(images), masks)
    optimizer.zero_grad(set_to_none=True)
    grad_scaler.scale(loss).backward()
#+     grad_scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(unet.parameters(), 1.0)  #! here
    before = unet[0].weight.detach().clone()
    grad_scaler.step(optimizer)  #! also
    grad_scaler.update()
    moved = max(moved, float((unet[0].weight - before).norm()))
print(moved)
