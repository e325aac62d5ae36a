# /// case
# category = "mode"
# kind = "numpy-on-tracked"
# severity = "error"
# names = ["curve"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(1, 1)
x = torch.linspace(0, 1, 5).unsqueeze(1)
curve = model(x)
values = curve.squeeze(1).numpy()  #- here
#+ values = curve.squeeze(1).detach().numpy()
print(values.max())
