# /// case
# category = "inplace"
# kind = "inplace-on-no-grad-view"
# severity = "error"
# names = ["window"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
conv = nn.Conv1d(1, 2, 3)
signal = conv(torch.randn(1, 1, 12))
with torch.no_grad():  #-
    window = signal[..., 2:6]  #- also
#+ window = signal[..., 2:6]
window.mul_(conv.weight.mean())  #! here
print(signal.sum())
