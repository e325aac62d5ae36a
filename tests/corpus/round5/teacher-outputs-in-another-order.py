# /// case
# title = "Teacher outputs are stored by batch number, but batches are shuffled"
# category = "data"
# kind = "misaligned-labels"
# kinds_also_ok = ["wrong-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["teacher_outputs", "shuffle", "fetch_teacher_outputs"]
# symptom = "students learn from other examples' teacher outputs"
# symptom_check = "agreement < 0.9"
# cause = "each pass over the shuffling loader has another order"
# fix = "ask the teacher in the training loop"
# evidence = [
#     { url = "https://github.com/haitongli/knowledge-distillation-pytorch/pull/16", title = "fix bugs about the batch order of teacher output" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(16)
x = torch.randn(96, 8)
y = x[:, :4].argmax(1)
dataloader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)  #! also


def net(width):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 4))


def train_teacher(model, steps=60):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model.eval().requires_grad_(False)


def loss_fn_kd(outputs, labels, teacher_outputs, T=3.0, alpha=0.9):
    kd = F.kl_div(F.log_softmax(outputs / T, 1), F.softmax(teacher_outputs / T, 1), reduction="batchmean") * T * T
    return alpha * kd + (1 - alpha) * F.cross_entropy(outputs, labels)


def fetch_teacher_outputs(teacher_model, dataloader):  #-
    teacher_outputs = []  #-
    with torch.no_grad():  #-
        for data_batch, _ in dataloader:  #-
            teacher_outputs.append(teacher_model(data_batch))  #-
    return teacher_outputs  #-
#-
#-
teacher, student = train_teacher(net(64)), net(12)
teacher_outputs = fetch_teacher_outputs(teacher, dataloader)  #- here
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for epoch in range(4):
    hits = 0
    for i, (train_batch, labels_batch) in enumerate(dataloader):
        output_batch = student(train_batch)
        output_teacher_batch = teacher_outputs[i]  #- here
#+         with torch.no_grad():
#+             output_teacher_batch = teacher(train_batch)
        loss = loss_fn_kd(output_batch, labels_batch, output_teacher_batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        hits += (output_teacher_batch.argmax(1) == labels_batch).sum().item()
    agreement = hits / len(x)
    print(epoch, loss.item(), agreement)
