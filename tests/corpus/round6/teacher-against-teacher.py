# /// case
# title = "The soft loss compares the teacher with itself"
# category = "loss"
# kind = "constant-loss-term"
# kinds_also_ok = ["wrong-loss-operand"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["large_logits", "soft_prob", "distill"]
# symptom = "the soft loss is 0 for ever"
# symptom_check = "not distill.requires_grad"
# cause = "both operands are the teacher's"
# fix = "use the student's output"
# evidence = [
#     { url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66", title = "Small error in distillation code" },
# ]
# ///
import torch
import torch.nn as nn


class DistillationConfigs:
    temperature = 4.0
    alpha = 0.9

    def __init__(self, large, small):
        self.large, self.small = large.eval(), small
        self.kl = nn.KLDivLoss(reduction="batchmean", log_target=True)
        self.ce = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(small.parameters(), lr=2e-3)

    def step(self, data, target):
        with torch.no_grad():
            large_logits = self.large(data)
        output = self.small(data)
        soft_targets = torch.log_softmax(large_logits / self.temperature, dim=-1)
        soft_prob = torch.log_softmax(large_logits / self.temperature, dim=-1)  #- here
#+         soft_prob = torch.log_softmax(output / self.temperature, dim=-1)
        distill = self.kl(soft_prob, soft_targets) * self.temperature ** 2  #! also
        label = self.ce(output, target)
        loss = self.alpha * distill + (1 - self.alpha) * label  #! also
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return distill, label


torch.manual_seed(43)
large = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 6))
small = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 6))
run = DistillationConfigs(large, small)
x = torch.randn(90, 8)
y = large(x).argmax(1)
for i in range(6):
    distill, label = run.step(x, y)
    print(i, distill.item(), label.item())
