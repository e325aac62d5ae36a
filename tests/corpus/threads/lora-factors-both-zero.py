# /// case
# title = "LoRA with both factors initialised to zero"
# category = "cause"
# kind = "zero-product"
# kinds_also_ok = ["zero-init-no-gradient"]
# severity = "warning"
# names = ["lora_A", "lora_B"]
# symptom = "both factors stay zero for ever: each one's gradient is a product with the other"
# symptom_check = "float(layer.lora_A.abs().max()) == 0 and float(layer.lora_B.abs().max()) == 0"
# cause = "A and B start at zero"
# fix = "initialise A at random"
# evidence = [
#     { url = "https://github.com/Guitaricet/relora/issues/18", title = "Code bugs" },
#     { url = "https://github.com/microsoft/LoRA/issues/98", title = "AB matrix initialization in layers.py does not conform to the description of the paper" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(0)


class LoRALinear(nn.Module):
    def __init__(self, base, r=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.zeros(r, base.in_features))  #- here
#+         self.lora_A = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, r))  #! here

    def forward(self, x):
        return self.base(x) + x @ self.lora_A.t() @ self.lora_B.t()  #! also


layer = LoRALinear(nn.Linear(8, 8))
opt = torch.optim.SGD([p for p in layer.parameters() if p.requires_grad], lr=0.1)
for step in range(20):
    x = torch.randn(32, 8)
    loss = (layer(x) - x.flip(1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
