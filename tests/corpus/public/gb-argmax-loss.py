# /// case
# title = "Loss is computed on argmax predictions"
# category = "graph-break"
# kind = "graph-break-non-differentiable"
# severity = "error"
# names = ["guess"]
# difficulty = "easy"
# symptom = "RuntimeError: element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "element 0 of tensors does not require grad"
# cause = "argmax returns integers without gradient"
# fix = "use the logits with a differentiable loss"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/1339" },
#     { url = "https://github.com/LZGMatrix/BOP19_CDPN_2019ICCV/issues/4" },
# ]
# ///
import torch
from torch import nn

torch.manual_seed(12)
digits = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))
opt = torch.optim.Adam(digits.parameters(), lr=1e-3)
scans = torch.randn(20, 16)
truth = torch.randint(0, 10, (20,))

for epoch in range(3):
    logits = digits(scans)
    guess = logits.argmax(dim=1).float()  #- here
    loss = nn.functional.mse_loss(guess, truth.float())  #- also
#+     loss = nn.functional.cross_entropy(logits, truth)
    opt.zero_grad()
    loss.backward()  #! also
    opt.step()
print(loss.item())
