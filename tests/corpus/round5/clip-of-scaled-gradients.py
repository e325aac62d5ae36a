# /// case
# title = "Scaled gradients are clipped"
# category = "numerics"
# kind = "clip-scaled-gradients"
# severity = "warning"
# names = ["grad_scaler", "clip_grad_norm_", "unscale_"]
# symptom = "after unscaling nothing is left of the gradients"
# symptom_check = "max(norms) < 1e-2"
# cause = "the threshold is for gradients without the scale"
# fix = "unscale_ before clipping"
# evidence = [
#     { url = "https://github.com/milesial/Pytorch-UNet/issues/468", title = "Gradients are clipped before the unscaling" },
#     { url = "https://github.com/harubaru/waifu-diffusion/issues/64", title = "clip_grad_norm applied to scaled gradients" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(38)


def dice_loss(prob, target, eps=1e-6):
    inter = 2 * (prob * target).sum(dim=(1, 2))
    return 1 - ((inter + eps) / (prob.sum(dim=(1, 2)) + target.sum(dim=(1, 2)) + eps)).mean()


class UNet(nn.Module):
    def __init__(self, c=6):
        super().__init__()
        self.inc, self.down = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, stride=2, padding=1)
        self.up, self.outc = nn.ConvTranspose2d(2 * c, c, 2, stride=2), nn.Conv2d(2 * c, 1, 1)

    def forward(self, x):
        a = F.relu(self.inc(x))
        b = F.relu(self.down(a))
        return self.outc(torch.cat([a, F.relu(self.up(b))], 1))


def train_model(model, loader, epochs=2, learning_rate=0.05, gradient_clipping=1.0):
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    grad_scaler = torch.amp.GradScaler("cpu")
    norms = []
    optimizer.register_step_pre_hook(lambda o, a, k: norms.append(
        torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()))
    for epoch in range(epochs):
        for images, true_masks in loader:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                masks_pred = model(images).squeeze(1)
            loss = F.binary_cross_entropy_with_logits(masks_pred.float(), true_masks)
            loss = loss + dice_loss(masks_pred.float().sigmoid(), true_masks)
            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()
#+             grad_scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)  #! here
            grad_scaler.step(optimizer)  #! also
            grad_scaler.update()
        print(epoch, loss.item())
    return norms


loader = [(torch.randn(2, 3, 8, 8), (torch.rand(2, 8, 8) < 0.4).float()) for _ in range(4)]
norms = train_model(UNet(), loader)
print(norms)
