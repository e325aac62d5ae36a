# /// case
# title = "Multibox training without a backward call"
# category = "accumulation"
# kind = "step-without-gradient"
# kinds_also_ok = ["missing-backward"]
# severity = "warning"
# names = ["loss", "optimizer", "step"]
# symptom = "the weights stay as they were"
# symptom_check = "torch.equal(first, net.loc.weight)"
# cause = "loss.backward() is missing"
# fix = "call it before the step"
# evidence = [
#     { url = "https://github.com/Goingqs/PyramidBox/issues/7", title = "No 'loss.backward()' during training?" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiBoxLoss(nn.Module):
    def __init__(self, neg_ratio=3):
        super().__init__()
        self.neg_ratio = neg_ratio

    def forward(self, loc, conf, truth_loc, truth_cls):
        positive = truth_cls > 0
        loss_l = F.smooth_l1_loss(loc[positive], truth_loc[positive])
        per_box = F.cross_entropy(conf.transpose(1, 2), truth_cls, reduction="none")
        mined = per_box.detach().masked_fill(positive, 0)
        hard = mined >= mined.topk(self.neg_ratio, dim=1).values[:, -1:]
        loss_c = per_box[positive | hard].mean()
        return loss_l, loss_c


class FaceBox(nn.Module):
    def __init__(self, priors=12):
        super().__init__()
        self.priors = priors
        self.base = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 49, 32), nn.ReLU())
        self.loc = nn.Linear(32, priors * 4)
        self.conf = nn.Linear(32, priors * 2)

    def forward(self, x):
        h = self.base(x)
        return self.loc(h).view(-1, self.priors, 4), self.conf(h).view(-1, self.priors, 2)


torch.manual_seed(12)
net = FaceBox()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9, weight_decay=5e-4)
criterion = MultiBoxLoss()
first = net.loc.weight.detach().clone()
losses = []
for iteration in range(5):
    images = torch.rand(4, 3, 16, 16)
    truth_cls = (torch.rand(4, 12) < 0.3).long()
    truth_cls[:, 0] = 1
    loc, conf = net(images)
    optimizer.zero_grad()
    loss_l, loss_c = criterion(loc, conf, torch.rand(4, 12, 4), truth_cls)
    loss = loss_l + loss_c  #! here
#+     loss.backward()
    optimizer.step()  #! here
    losses.append(loss.item())
print(losses)
