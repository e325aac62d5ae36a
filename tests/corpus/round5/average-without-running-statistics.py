# /// case
# title = "The moving average leaves out the buffers"
# category = "identity"
# kind = "average-without-buffers"
# severity = "warning"
# names = ["update_ema_variables", "buffers"]
# symptom = "the teacher's batch norms keep mean 0 and variance 1"
# symptom_check = "ema_model[1].running_mean.abs().max().item() == 0"
# cause = "only parameters() are averaged, and the teacher is in eval mode"
# fix = "copy the buffers too"
# evidence = [
#     { url = "https://github.com/CuriousAI/mean-teacher/issues/9", title = "EMA of BatchNorm Layer" },
#     { url = "https://github.com/FlyreelAI/sesemi/issues/36", title = "Batch norm weights not updated when using EMA in fully supervised mode" },
# ]
# ///
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(23)


def create_model(ema=False):
    model = nn.Sequential(nn.Conv1d(2, 12, 3, padding=1), nn.BatchNorm1d(12), nn.ReLU(), nn.AdaptiveAvgPool1d(1),
                          nn.Flatten(), nn.Linear(12, 3))
    if ema:
        for param in model.parameters():
            param.detach_()
    return model


def update_ema_variables(model, ema_model, alpha, global_step):
    # the true average until the exponential one is more correct
    alpha = min(1 - 1 / (global_step + 1), alpha)
    for ema_param, param in zip(ema_model.parameters(), model.parameters()):  #! here
        ema_param.data.mul_(alpha).add_(param.data, alpha=1 - alpha)
#+     for ema_buffer, buffer in zip(ema_model.buffers(), model.buffers()):
#+         ema_buffer.copy_(buffer)


model, ema_model = create_model(), create_model(ema=True)
ema_model.load_state_dict(copy.deepcopy(model.state_dict()))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
model.train()
ema_model.eval()  #! also
for global_step in range(15):
    labeled, target = torch.randn(8, 2, 20) * 2 + 1, torch.randint(0, 3, (8,))
    unlabeled = torch.randn(16, 2, 20) * 2 + 1
    logit = model(torch.cat([labeled, unlabeled + 0.1 * torch.randn_like(unlabeled)]))
    with torch.no_grad():
        ema_logit = ema_model(unlabeled)
    class_loss = F.cross_entropy(logit[:8], target)
    consistency = F.mse_loss(logit[8:].softmax(1), ema_logit.softmax(1))
    loss = class_loss + min(1.0, global_step / 10) * consistency
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update_ema_variables(model, ema_model, 0.99, global_step)
print(class_loss.item(), consistency.item())
