# /// case
# title = "Scaled gradients are clipped"
# category = "numerics"
# kind = "clip-before-unscale"
# severity = "warning"
# names = ["grad_scaler", "clip_grad_norm_", "unscale_"]
# symptom = "the true gradients are cut to 1 / 65536 of the bound"
# symptom_check = "max(used) < 1e-3"
# cause = "clipping sees scaled gradients"
# fix = "unscale_ before clipping"
# evidence = [
#     { url = "https://github.com/milesial/Pytorch-UNet/issues/468", title = "Gradients are clipped before the unscaling" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def dice_loss(prob, truth, eps=1e-6):
    inter = 2 * (prob * truth).sum((1, 2))
    sets = prob.sum((1, 2)) + truth.sum((1, 2))
    return 1 - ((inter + eps) / (sets + eps)).mean()


class DoubleConv(nn.Sequential):
    def __init__(self, i, o):
        super().__init__(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, ch=6):
        super().__init__()
        self.inc, self.down, self.up = DoubleConv(3, ch), DoubleConv(ch, 2 * ch), DoubleConv(3 * ch, ch)
        self.outc = nn.Conv2d(ch, 1, 1)

    def forward(self, x):
        a = self.inc(x)
        b = F.interpolate(self.down(F.max_pool2d(a, 2)), scale_factor=2)
        return self.outc(self.up(torch.cat([a, b], 1))).squeeze(1)


def train_model(model, batches, amp=True, lr=1e-2, gradient_clipping=1.0):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=lr, weight_decay=1e-8, momentum=0.9, foreach=True)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=amp)
    stepped = []
    for images, masks in batches:
        with torch.autocast("cpu", enabled=False):
            pred = model(images)
            loss = F.binary_cross_entropy_with_logits(pred, masks) + dice_loss(torch.sigmoid(pred), masks)
        optimizer.zero_grad(set_to_none=True)
        grad_scaler.scale(loss).backward()
#+         grad_scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)  #! here
        grad_scaler.step(optimizer)  #! also
        stepped.append(float(model.outc.weight.grad.norm()))
        grad_scaler.update()
    return stepped


torch.manual_seed(95)
used = train_model(UNet(), [(torch.rand(2, 3, 8, 8), (torch.rand(2, 8, 8) > 0.5).float()) for _ in range(3)])
print(used)
