# /// case
# title = "Freezing is undone by a loop over all parameters"
# category = "flags"
# kind = "freeze-without-effect"
# kinds_also_ok = ["frozen-parameter-still-updated", "freeze-undone"]
# severity = "warning"
# names = ["requires_grad", "freeze"]
# symptom = "the frozen backbone moves"
# symptom_check = "moved > 0"
# cause = "the loop that groups the parameters sets every flag to True"
# fix = "leave the flags alone there"
# evidence = [
#     { url = "https://github.com/ultralytics/yolov5/issues/1213", title = "parameters freeze invalid" },
# ]
# ///
import argparse
import logging

import torch
import torch.nn as nn

logger = logging.getLogger("train")


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.SiLU())
        self.neck = nn.Conv2d(8, 8, 1)
        self.detect = nn.Conv2d(8, 6, 1)

    def forward(self, x):
        return self.detect(torch.nn.functional.silu(self.neck(self.backbone(x))))


def train(opt):
    torch.manual_seed(opt.seed)
    model = Detector()

    # Freeze
    freeze = opt.freeze
    if any(freeze):
        for k, v in model.named_parameters():
            if any(k.startswith(x) for x in freeze):
                logger.info("freezing %s", k)
                v.requires_grad = False

    # Optimizer
    pg0, pg1, pg2 = [], [], []
    for k, v in model.named_parameters():
        v.requires_grad = True  #- here
        if k.endswith(".bias"):
            pg2.append(v)
        elif k.endswith(".weight") and v.ndim > 1:
            pg1.append(v)
        else:
            pg0.append(v)
    optimizer = torch.optim.SGD(pg0, lr=opt.lr, momentum=0.9, nesterov=True)
    optimizer.add_param_group({"params": pg1, "weight_decay": 5e-4})
    optimizer.add_param_group({"params": pg2})

    old = model.backbone[0].weight.detach().clone()
    for _ in range(opt.iterations):
        imgs, targets = torch.rand(4, 3, 9, 9), torch.rand(4, 6, 4, 4).round()
        loss = nn.functional.binary_cross_entropy_with_logits(model(imgs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #! also
    return (model.backbone[0].weight - old).abs().max().item()


parser = argparse.ArgumentParser()
parser.add_argument("--freeze", nargs="+", default=["backbone."])
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--iterations", type=int, default=4)
moved = train(parser.parse_args([]))
print(moved)
