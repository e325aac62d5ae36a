# /// case
# title = "Sorting parameters into decay and no-decay groups by suffix loses the class token and the positions"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["parameter-groups-incomplete"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["configure", "decay", "no_decay", "cls_token", "position"]
# symptom = "cls_token and position are never updated"
# symptom_check = "torch.equal(vit.cls_token, start[0]) and torch.equal(vit.position, start[1])"
# cause = "A parameter whose name ends neither with weight nor with bias comes into neither group."
# fix = "put everything else into the group without decay"
# ///
import torch
import torch.nn as nn


class Vit(nn.Module):
    def __init__(self, patches: int = 9, patch: int = 16, width: int = 24, classes: int = 3) -> None:
        super().__init__()
        self.embed = nn.Linear(patch, width)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, patches + 1, width) * 0.02)
        self.encoder = nn.TransformerEncoderLayer(width, 4, 48, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        x = self.embed(patches)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.position
        return self.head(self.encoder(x)[:, 0])


def configure(model: nn.Module, lr: float, weight_decay: float) -> torch.optim.Optimizer:
    decay, no_decay = [], []
    for name, parameter in model.named_parameters():
        if name.endswith("weight") and "norm" not in name:  #! here
            decay.append(parameter)
        elif name.endswith("bias") or "norm" in name:  #- here
#+         else:
            no_decay.append(parameter)  #! also
    groups = [{"params": decay, "weight_decay": weight_decay}, {"params": no_decay, "weight_decay": 0.0}]  #! also
    return torch.optim.AdamW(groups, lr=lr)  #! also


torch.manual_seed(33)
vit = Vit()
start = vit.cls_token.detach().clone(), vit.position.detach().clone()
optimizer = configure(vit, lr=2e-3, weight_decay=0.05)
images = torch.randn(40, 9, 16)
labels = images.mean((1, 2)).gt(0).long() + (images[:, 0, 0] > 1).long()
for epoch in range(3):
    for rows in torch.arange(40).split(10):
        loss = nn.functional.cross_entropy(vit(images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
