# /// case
# title = "The criterion's learnable temperature is in no optimizer"
# category = "optimizer-time"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["logit_scale", "criterion"]
# symptom = "logit_scale keeps its initial value"
# symptom_check = "float(criterion.logit_scale) == 2.5"
# cause = "only the model's parameters are given to the optimizer"
# fix = "add the criterion's"
# evidence = [
#     { url = "https://github.com/idstcv/SoftTriple/issues/4", title = "The BatchNorm layers are not completely frozen" },
#     { url = "https://github.com/ACEsuit/mace/issues/525", title = "Automatically add parameters to optimizer" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn


class ClipLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(2.5))  #! also

    def forward(self, a, b):
        logits = self.logit_scale.exp() * F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).t()
        labels = torch.arange(len(a))
        return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


torch.manual_seed(31)
towers = nn.ModuleDict({"image": nn.Linear(12, 8), "text": nn.Linear(9, 8)})
criterion = ClipLoss()
opt = torch.optim.AdamW(towers.parameters(), lr=1e-2)  #- here
#+ opt = torch.optim.AdamW([*towers.parameters(), *criterion.parameters()], lr=1e-2)
for step in range(10):
    images, texts = torch.randn(16, 12), torch.randn(16, 9)
    loss = criterion(towers["image"](images), towers["text"](texts))
    opt.zero_grad()
    loss.backward()
    opt.step()  #! also
print(loss.item(), criterion.logit_scale.item())
