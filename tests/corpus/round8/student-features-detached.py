# /// case
# title = "In feature distillation the detach stands at the student's features"
# category = "graph-break"
# kind = "detach-on-wrong-operand"
# kinds_also_ok = ["loss-term-without-gradient", "detached-prediction"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["feature_loss", "detach", "projector"]
# symptom = "the projector is never trained, the feature term has no effect"
# symptom_check = "projector.weight.grad is None"
# cause = "hint_loss detaches the student's projected features, not the teacher's, so that nothing of it can be differentiated."
# fix = "detach the teacher's"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


def conv_net(width):
    body = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, width, 3, stride=2, padding=1), nn.ReLU())
    return body, nn.Linear(width * 16, 4)


def run(net, images):
    body, head = net
    features = body(images)
    return features, head(features.flatten(1))


def soft_loss(student, teacher, temperature=3.0):
    log_p = F.log_softmax(student / temperature, dim=1)
    q = F.softmax(teacher / temperature, dim=1)
    return F.kl_div(log_p, q, reduction="batchmean") * temperature ** 2


def hint_loss(student, teacher):
    guess = projector(student)  #! also
    return F.mse_loss(F.normalize(guess.detach(), dim=1), F.normalize(teacher, dim=1))  #- here
#+     return F.mse_loss(F.normalize(guess, dim=1), F.normalize(teacher.detach(), dim=1))


torch.manual_seed(90)
teacher, student = conv_net(16), conv_net(6)
projector = nn.Conv2d(6, 16, 1)
for module in teacher:
    module.eval().requires_grad_(False)
optimizer = torch.optim.SGD([p for m in (*student, projector) for p in m.parameters()], lr=0.05, momentum=0.9)
images, labels = torch.randn(48, 1, 8, 8), torch.randint(0, 4, (48,))
for epoch in range(4):
    for rows in torch.randperm(48).split(16):
        t_features, t_logits = run(teacher, images[rows])
        s_features, s_logits = run(student, images[rows])
        hint = hint_loss(s_features, t_features)  #! also
        loss = F.cross_entropy(s_logits, labels[rows]) + soft_loss(s_logits, t_logits) + 5.0 * hint  #! also
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), hint.item())
