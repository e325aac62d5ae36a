# /// case
# title = "zero_grad() between the backward calls of two losses that share a step"
# category = "other-loss"
# kind = "gradient-cleared-before-step"
# kinds_also_ok = ["zero-grad-inside-accumulation", "zero-grad-before-step"]
# severity = "warning"
# names = ["zero_grad", "opt"]
# symptom = "the reconstruction loss's gradient is cleared before the step"
# symptom_check = "torch.allclose(model.enc.weight.grad, second, atol=1e-7)"
# cause = "the second zero_grad() deletes what the first loss left"
# fix = "clear once per step"
# evidence = [
#     { url = "https://github.com/openpifpaf/openpifpaf/issues/123", title = "Order of opt.zero_grad(), loss.backward(), opt.step()" },
# ]
# ///
import torch
from torch import nn


class DualTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(8, 6)
        self.rec = nn.Linear(6, 8)
        self.cls = nn.Linear(6, 3)

    def forward(self, x):
        z = torch.relu(self.enc(x))
        return self.rec(z), self.cls(z)


torch.manual_seed(3)
model = DualTask()
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
mse, ce = nn.MSELoss(), nn.CrossEntropyLoss()
for i in range(8):
    x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
    recon, logits = model(x)
    opt.zero_grad()
    mse(recon, x).backward(retain_graph=True)  #! also
    opt.zero_grad()  #- here
    class_loss = ce(logits, y)
    (second,) = torch.autograd.grad(class_loss, model.enc.weight, retain_graph=True)
    class_loss.backward()
    opt.step()  #! also
