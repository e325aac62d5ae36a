# /// case
# title = "Both factors of the low-rank update start at zero"
# category = "scale"
# kind = "zero-initialization"
# kinds_also_ok = ["symmetric-zero-init", "zero-gradient"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["lora_A", "lora_B", "zeros"]
# symptom = "each factor's gradient is a product with the other, so both stay zero"
# symptom_check = "all(m.lora_A.abs().sum().item() == 0 and m.lora_B.abs().sum().item() == 0 for m in model.modules() if isinstance(m, LoRALinear))"
# cause = "B A has no gradient at A = B = 0"
# fix = "draw A at random"
# ///
import math

import torch
import torch.nn as nn


class LoRALinear(nn.Linear):
    def __init__(self, n_in, n_out, rank=4, alpha=8):
        super().__init__(n_in, n_out)
        self.weight.requires_grad_(False)
        self.bias.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.zeros(rank, n_in))
        self.lora_B = nn.Parameter(torch.zeros(n_out, rank))
        self.scaling = alpha / rank
        self.reset_lora()

    def reset_lora(self):
        nn.init.zeros_(self.lora_A)  #- here
#+         nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        nn.init.zeros_(self.lora_B)  #! also

    def forward(self, x):
        update = nn.functional.linear(nn.functional.linear(x, self.lora_A), self.lora_B)
        return super().forward(x) + self.scaling * update


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = LoRALinear(14, 20)
        self.mid = LoRALinear(20, 20)
        self.score = nn.Linear(20, 2)

    def forward(self, x):
        return self.score(torch.relu(self.mid(torch.relu(self.proj(x)))))


torch.manual_seed(91)
model = Net()
trainable = {n: p for n, p in model.named_parameters() if p.requires_grad}
optimizer = torch.optim.AdamW(trainable.values(), lr=1e-2, weight_decay=0.01)
x = torch.randn(64, 14)
y = (x[:, 3] > x[:, 9]).long()
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), list(trainable))
