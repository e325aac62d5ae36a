# /// case
# title = "The learned task weights are not given to the optimizer"
# category = "optimizer"
# kind = "loss-parameters-not-in-optimizer"
# kinds_also_ok = ["parameters-not-in-optimizer", "criterion-parameters-forgotten", "untrained-parameter"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["criterion", "log_vars", "optimizer"]
# symptom = "the task weights stay at their first value (and their gradient grows, as nobody clears it)"
# symptom_check = "criterion.log_vars.abs().max().item() == 0"
# cause = "the optimizer has only the parameters of the model, not criterion.log_vars."
# fix = "give the optimizer the criterion's parameters too"
# ///
# multi-task: age (regression), gender (binary) and emotion (4 classes) from one trunk,
# the task weights are learned following Kendall et al.
import torch
import torch.nn as nn
import torch.nn.functional as F


class UncertaintyLoss(nn.Module):
    def __init__(self, n_tasks):
        super().__init__()
        self.log_vars = nn.Parameter(torch.zeros(n_tasks))  #! also

    def forward(self, losses):
        total = 0
        for log_var, loss in zip(self.log_vars, losses):
            total = total + torch.exp(-log_var) * loss + log_var
        return total


class FaceNet(nn.Module):
    def __init__(self, n_emotions=4):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU(),
            nn.Flatten(), nn.Linear(16 * 4 * 4, 32), nn.ReLU(),
        )
        self.age = nn.Linear(32, 1)
        self.gender = nn.Linear(32, 1)
        self.emotion = nn.Linear(32, n_emotions)

    def forward(self, x):
        z = self.trunk(x)
        return {"age": self.age(z)[:, 0], "gender": self.gender(z)[:, 0], "emotion": self.emotion(z)}


def fake_faces(n):
    age = torch.rand(n) * 60 + 10
    gender = torch.randint(0, 2, (n,))
    emotion = torch.randint(0, 4, (n,))
    img = 0.3 * torch.randn(n, 3, 16, 16)
    img[:, 0] += age.view(-1, 1, 1) / 40
    img[:, 1, :8] += gender.view(-1, 1, 1).float()
    for k in range(4):
        img[emotion == k, 2, 4 * k:4 * k + 4] += 1.0
    return img, {"age": (age - 40) / 17, "gender": gender.float(), "emotion": emotion}


def task_losses(out, target):
    return [
        F.mse_loss(out["age"], target["age"]),
        F.binary_cross_entropy_with_logits(out["gender"], target["gender"]),
        F.cross_entropy(out["emotion"], target["emotion"]),
    ]


torch.manual_seed(9)
torch.set_num_threads(1)
images, labels = fake_faces(256)
model = FaceNet()
criterion = UncertaintyLoss(3)  #! also
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  #- here
#+ optimizer = torch.optim.Adam([*model.parameters(), *criterion.parameters()], lr=5e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)

for epoch in range(12):
    for idx in torch.randperm(len(images)).split(32):
        batch = {k: v[idx] for k, v in labels.items()}
        losses = task_losses(model(images[idx]), batch)
        loss = criterion(losses)
        optimizer.zero_grad()  #! also
        loss.backward()
        optimizer.step()  #! also
    scheduler.step()
    if epoch % 4 == 3:
        print(epoch, [round(l.item(), 3) for l in losses], "sigma^2", criterion.log_vars.exp().tolist())
