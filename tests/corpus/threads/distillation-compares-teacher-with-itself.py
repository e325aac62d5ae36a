# /// case
# title = "The distillation term uses the teacher's logits twice"
# category = "uncovered"
# kind = "constant-loss-term"
# kinds_also_ok = ["loss-term-without-gradient", "graph-break-no-grad"]
# severity = "warning"
# names = ["kd_loss", "large_logits"]
# symptom = "the soft term is zero and has no gradient"
# symptom_check = "kd_loss.grad_fn is None"
# cause = "large_logits stands where the student's output belongs"
# fix = "use output"
# evidence = [
#     { url = "https://github.com/labmlai/annotated_deep_learning_paper_implementations/issues/66", title = "Small error in distillation code" },
# ]
# ///
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(11)
large = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
small = nn.Linear(10, 5)
optimizer = torch.optim.Adam(small.parameters(), lr=1e-2)
kl_div_loss = nn.KLDivLoss(log_target=True, reduction="batchmean")
temperature, alpha = 5.0, 0.5
for _ in range(10):
    data, target = torch.randn(32, 10), torch.randint(0, 5, (32,))
    with torch.no_grad():
        large_logits = large(data)  #! also
    output = small(data)
    soft_targets = F.log_softmax(large_logits / temperature, dim=-1)
    soft_prob = F.log_softmax(large_logits / temperature, dim=-1)  #- here
#+     soft_prob = F.log_softmax(output / temperature, dim=-1)
    kd_loss = kl_div_loss(soft_prob, soft_targets)  #! also
    label_loss = F.cross_entropy(output, target)
    loss = alpha * temperature**2 * kd_loss + (1 - alpha) * label_loss  #! also
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
