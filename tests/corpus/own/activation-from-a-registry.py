# /// case
# category = "training"
# kind = "double-softmax"
# severity = "warning"
# names = ["loss"]
# ///
#-
import functools

import torch
from torch import nn

ACTIVATIONS = {"relu": nn.ReLU, "softmax": functools.partial(nn.Softmax, dim=-1), "none": nn.Identity}


def build(spec):
    layers = []
    for size_in, size_out, act in spec:
        layers += [nn.Linear(size_in, size_out), ACTIVATIONS[act]()]  #! also
    return nn.Sequential(*layers)


torch.manual_seed(0)
classifier = build([(7, 14, "relu"), (14, 3, "softmax")])  #- here
#+ classifier = build([(7, 14, "relu"), (14, 3, "none")])
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
opt = torch.optim.Adam(classifier.parameters())
for _ in range(5):
    rows = torch.randn(16, 7)
    opt.zero_grad()
    criterion(classifier(rows), rows[:, :3].argmax(1)).backward()  #! also
    opt.step()
