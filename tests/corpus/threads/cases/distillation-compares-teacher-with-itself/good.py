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
        large_logits = large(data)
    output = small(data)
    soft_targets = F.log_softmax(large_logits / temperature, dim=-1)
    soft_prob = F.log_softmax(output / temperature, dim=-1)
    kd_loss = kl_div_loss(soft_prob, soft_targets)
    label_loss = F.cross_entropy(output, target)
    loss = alpha * temperature**2 * kd_loss + (1 - alpha) * label_loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
