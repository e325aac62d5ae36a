# /// case
# title = "Validation runs in training mode"
# category = "mode"
# kind = "train-mode-in-evaluation"
# kinds_also_ok = ["batchnorm-updated-in-evaluation"]
# severity = "warning"
# names = ["train", "phase", "running_mean"]
# symptom = "batch norm's running statistics take in validation data"
# symptom_check = "not torch.equal(stats_before, stats_after)"
# cause = "model.train() for both phases"
# fix = "model.train(phase == 'train')"
# evidence = [
#     { url = "https://github.com/princeton-vl/pytorch_stacked_hourglass/issues/44", title = "`model.train()` usage" },
#     { url = "https://github.com/floodsung/LearningToCompare_FSL/issues/48", title = "Data Leakage!" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(35)


class Hourglass(nn.Module):
    def __init__(self, c=8, joints=4):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, c, 3, stride=2, padding=1), nn.BatchNorm2d(c), nn.ReLU())
        self.up = nn.ConvTranspose2d(c, c, 2, stride=2)
        self.out = nn.Conv2d(c, joints, 1)

    def forward(self, x):
        return self.out(torch.relu(self.up(self.down(x))))


def make_network():
    config = {"net": Hourglass(), "iters": {"train": 5, "valid": 3}}
    config["optimizer"] = torch.optim.Adam(config["net"].parameters(), lr=1e-3)

    def run_batch(batch_id, config, phase, imgs, heatmaps):
        net = config["net"]
        net = net.train()  #- here
#+         net = net.train(phase == "train")
        if phase == "train":
            loss = (net(imgs) - heatmaps).square().mean()
            config["optimizer"].zero_grad()
            loss.backward()
            config["optimizer"].step()
        else:
            with torch.no_grad():  #! also
                loss = (net(imgs) - heatmaps).square().mean()
        return loss.item()

    return run_batch, config


def data(phase):
    shift = 0.0 if phase == "train" else 2.0
    return torch.randn(4, 3, 8, 8) + shift, torch.rand(4, 4, 8, 8)


func, config = make_network()
for epoch in range(2):
    for phase in ("train", "valid"):
        stats_before = config["net"].down[1].running_mean.clone()
        losses = [func(i, config, phase, *data(phase)) for i in range(config["iters"][phase])]
        print(epoch, phase, sum(losses) / len(losses))
stats_after = config["net"].down[1].running_mean.clone()
