# /// case
# title = "Test function between epochs leaves the net in evaluation mode"
# category = "mode"
# kind = "training-in-eval-mode"
# severity = "warning"
# names = ["eval", "train", "test"]
# symptom = "from the second epoch on dropout and batch statistics are off"
# symptom_check = "not all(modes)"
# cause = "eval() is not undone"
# fix = "net.train() at the start of each epoch"
# evidence = [
#     { url = "https://github.com/HuiZeng/Grid-Anchor-based-Image-Cropping-Pytorch/issues/2", title = "Why to freeze BatchNorm after the second epoch" },
# ]
# ///
import math

import torch
import torch.nn as nn


class CropScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.feat = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.score = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(8 * 16, 1))

    def forward(self, crops):
        return self.score(self.feat(crops)).squeeze(1)


torch.manual_seed(81)
net = CropScorer()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, betas=(0.9, 0.999))
train_set = [(torch.rand(12, 3, 9, 9), torch.rand(12) * 5) for _ in range(3)]
test_set = [(torch.rand(12, 3, 9, 9), torch.rand(12) * 5) for _ in range(2)]
modes = []


def test():
    net.eval()  #! here
    total, ranked = 0.0, []
    with torch.no_grad():
        for image, MOS in test_set:
            out = net(image)
            total += nn.functional.smooth_l1_loss(out, MOS).item()
            ranked.append(torch.corrcoef(torch.stack([out, MOS]))[0, 1].item())
    return total / len(test_set), sum(ranked) / len(ranked)


def train():
    net.train()  #! also
    best = math.inf
    for epoch in range(3):
#+         net.train()
        for image, MOS in train_set:
            modes.append(net.training)
            out = net(image)  #! also
            loss = nn.functional.smooth_l1_loss(out, MOS)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        test_loss, _ = test()  #! here
        best = min(best, test_loss)
    return best


print(train(), modes)
