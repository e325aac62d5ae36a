# /// case
# title = "One branch of the model goes through NumPy: its parameters never get a gradient"
# category = "graph-break"
# kind = "graph-break-numpy"
# severity = "warning"
# names = ["self.freq"]
# difficulty = "medium"
# symptom = "silent: freq layer keeps grad None"
# symptom_check = "net.freq.weight.grad is None"
# cause = "detach().numpy() leaves autograd; from_numpy() gives a constant"
# fix = "use torch.sin / torch.cos"
# evidence = [
#     { url = "https://deepinout.com/pytorch/pytorch-questions/75_pytorch_runtime_error_element_0_of_tensors_does_not_require_grad_and_does_not_have_a_grad_fn.html" },
#     { url = "https://github.com/coqui-ai/TTS/issues/2348" },
# ]
# ///
import numpy as np
import torch
import torch.nn as nn


class Seasonal(nn.Module):
    """trend + periodic part"""

    def __init__(self):
        super().__init__()
        self.trend = nn.Linear(1, 1)
        self.freq = nn.Linear(1, 4)
        self.amp = nn.Linear(4, 1)

    def forward(self, t):
        phase = self.freq(t)
        waves = torch.from_numpy(np.sin(phase.detach().numpy()))  #- here
#+         waves = torch.sin(phase)
        return self.trend(t) + self.amp(waves)


torch.manual_seed(30)
net = Seasonal()
t = torch.linspace(0, 6, 60).unsqueeze(1)
y = 0.3 * t + np.float32(1.0) * torch.sin(2 * t)
opt = torch.optim.Adam(net.parameters(), lr=0.02)
for k in range(15):
    opt.zero_grad()
    err = nn.functional.mse_loss(net(t), y)
    err.backward()
    opt.step()
print(err.item())
