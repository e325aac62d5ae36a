# /// case
# title = "Gradients are clipped after the step"
# category = "optimizer"
# kind = "clip-after-step"
# kinds_also_ok = ["clip-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["clip_grad_norm_", "step"]
# symptom = "the step uses unclipped gradients"
# symptom_check = "trained_with[0] > 0.3 + 1e-4"
# cause = "the clip call follows step()"
# fix = "clip before the step"
# evidence = [
#     { url = "https://github.com/jongwook/onsets-and-frames/issues/24", title = "Gradient clipping in the wrong place?" },
# ]
# ///
import torch
import torch.nn as nn
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(70)
clip_gradient_norm, learning_rate, iterations = 0.3, 6e-3, 8


class OnsetStack(nn.Module):
    def __init__(self, mels=20, keys=11, size=24):
        super().__init__()
        self.conv = nn.Conv1d(mels, size, 3, padding=1)
        self.rnn = nn.LSTM(size, size // 2, batch_first=True, bidirectional=True)
        self.fc = nn.Linear(size, keys)

    def forward(self, mel):
        h = torch.relu(self.conv(mel.transpose(1, 2))).transpose(1, 2)
        return torch.sigmoid(self.fc(self.rnn(h)[0]))

    def run_on_batch(self, batch):
        pred = self(batch["mel"])
        return pred, {"loss/onset": nn.functional.binary_cross_entropy(pred, batch["onset"], reduction="sum") / len(pred)}


def cycle(n):
    while True:
        for i in range(n):
            g = torch.Generator().manual_seed(i)
            yield {"mel": torch.randn(3, 16, 20, generator=g), "onset": (torch.rand(3, 16, 11, generator=g) < 0.1).float()}


model = OnsetStack()
optimizer = torch.optim.Adam(model.parameters(), learning_rate)
scheduler = StepLR(optimizer, step_size=4, gamma=0.98)
trained_with = []
optimizer.register_step_pre_hook(lambda opt, a, k: trained_with.append(
    torch.stack([p.grad.norm() for p in model.parameters()]).norm().item()))
for i, batch in zip(range(iterations), cycle(4)):
    predictions, losses = model.run_on_batch(batch)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
#+     if clip_gradient_norm:
#+         nn.utils.clip_grad_norm_(model.parameters(), clip_gradient_norm)
    optimizer.step()  #! also
    scheduler.step()
    if clip_gradient_norm:  #-
        nn.utils.clip_grad_norm_(model.parameters(), clip_gradient_norm)  #- here
    print(i, loss.item())
