# /// case
# title = "A schedule that counts epochs is stepped once per batch"
# category = "optimizer"
# kind = "scheduler-stepped-per-batch"
# kinds_also_ok = ["epoch-schedule-stepped-per-batch", "learning-rate-decays-too-fast", "scheduler-in-batch-loop"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["scheduler", "StepLR", "scheduler.step"]
# symptom = "after five epochs the learning rate has been multiplied by 0.3 fifteen times, training has stopped"
# symptom_check = "scheduler.get_last_lr()[0] < 1e-6"
# cause = "StepLR counts calls; with a step per batch, decay_every means batches rather than epochs."
# fix = "step the scheduler once per epoch"
# ///
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "epochs": 5,
    "batch_size": 16,
    "lr": 3e-2,
    "decay_every": 2,
    "gamma": 0.3,
}


def conv_bn(inputs, outputs, stride=1):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))


def build_model(classes=3):
    return nn.Sequential(conv_bn(1, 8), conv_bn(8, 12, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, classes))


def shapes(count, size=12):
    kind = torch.randint(0, 3, (count,))
    images = 0.2 * torch.randn(count, 1, size, size)
    for image, k in zip(images, kind.tolist()):
        if k == 0:
            image[0, size // 2] += 1
        elif k == 1:
            image[0, :, size // 2] += 1
        else:
            image[0].diagonal().add_(1)
    return TensorDataset(images, kind)


def train_one_epoch(model, loader, optimizer, scheduler):
    model.train()
    total = 0.0
    for images, kind in loader:
        loss = nn.functional.cross_entropy(model(images), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  #! also
        scheduler.step()  #- here
        total += loss.item() * len(kind)
#+     scheduler.step()
    return total / len(loader.dataset)  #! also


def run(config):
    torch.manual_seed(77)
    loader = DataLoader(shapes(96), batch_size=config["batch_size"], shuffle=True)
    model = build_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=config["decay_every"], gamma=config["gamma"])  #! here
    for epoch in range(config["epochs"]):
        value = train_one_epoch(model, loader, optimizer, scheduler)  #! also
        print(f"epoch {epoch} loss {value:.4f} lr {scheduler.get_last_lr()[0]:.2e}")
    return model, scheduler


model, scheduler = run(CONFIG)
