# /// case
# title = "The border of an attention map is set to zero in place"
# category = "in-place"
# kind = "inplace-modified-saved-tensor"
# severity = "error"
# names = ["att"]
# symptom = "RuntimeError: modified by an inplace operation"
# raises = "RuntimeError"
# raises_message = "modified by an inplace operation"
# cause = "sigmoid's output is saved for backward"
# fix = "clone first"
# evidence = [
#     { url = "https://github.com/AggMan96/RK-Net/issues/9", title = "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: [torch.cuda.FloatTensor [8, 1, 96, 96]], which is output 0 of ReluBackward0, is at version" },
# ]
# ///
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Conv2d(4, 1, 3, padding=1)
        self.features = nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x, polish=True):
        att = torch.sigmoid(self.score(x))
        if polish:
#+             att = att.clone()
            att[:, :, 0, :] = 0  #! here
            att[:, :, -1, :] = 0  #! here
            att[:, :, :, 0] = 0  #! here
            att[:, :, :, -1] = 0  #! here
        return (self.features(x) * att).mean((2, 3))


torch.manual_seed(2)
model = Detector()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    x, y = torch.randn(2, 4, 12, 12), torch.randn(2, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()  #! also
    optimizer.step()
