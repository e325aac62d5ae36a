# /// case
# title = "The synthetic images that SGD gets are a product"
# category = "leaf"
# kind = "optimizes-non-leaf"
# severity = "error"
# names = ["image_syn"]
# symptom = "the optimizer refuses the tensor"
# raises = "ValueError"
# raises_message = "can't optimize a non-leaf Tensor"
# cause = "multiplying a leaf makes a new tensor with a graph"
# fix = "make the leaf of the scaled values"
# evidence = [
#     { url = "https://github.com/pytorch/pytorch/issues/140469", title = "ValueError: can't optimize a non-leaf Tensor" },
#     { url = "https://github.com/vinsis/ternary-quantization/issues/4", title = "ValueError: can’t optimize a non-leaf Tensor?" },
# ]
# ///
import argparse

import torch
from torch import nn

args = argparse.Namespace(dlipc=2, dllr_img=0.5, classes=3, steps=5)
torch.manual_seed(0)
real_x = torch.randn(90, 1, 6, 6)
real_y = torch.arange(90) % args.classes
real_x += real_y.view(-1, 1, 1, 1) * 0.5

embed = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten())
embed.requires_grad_(False)

# distribution matching: a few images per class whose mean features are those of the class
image_syn = torch.randn(size=(args.classes * args.dlipc, 1, 6, 6), requires_grad=True) * 0.01  #- here
#+ image_syn = (torch.randn(size=(args.classes * args.dlipc, 1, 6, 6)) * 0.01).requires_grad_(True)
label_syn = torch.arange(args.classes).repeat_interleave(args.dlipc)
optimizer_img = torch.optim.SGD([image_syn], lr=args.dllr_img, momentum=0.5)  #! also

for it in range(args.steps):
    loss = 0.0
    for c in range(args.classes):
        target = embed(real_x[real_y == c]).mean(0)
        loss = loss + (embed(image_syn[label_syn == c]).mean(0) - target).square().sum()
    optimizer_img.zero_grad()
    loss.backward()
    optimizer_img.step()
    print(it, loss.item())
