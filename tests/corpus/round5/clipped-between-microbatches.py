# /// case
# title = "Gradients are clipped while they are still being accumulated"
# category = "accumulation"
# kind = "clip-during-accumulation"
# severity = "warning"
# names = ["clip_grad_norm_", "batch_accumulate"]
# symptom = "earlier micro-batches are scaled down again and again"
# symptom_check = "clips > steps"
# cause = "clip in each micro-batch"
# fix = "clip once, before the step"
# evidence = [
#     { url = "https://github.com/Deci-AI/super-gradients/pull/653", title = "Fix grad clipping stage + upscale gradients before clipping" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(90)


class CallbackHandler(list):
    def __call__(self, name, **context):
        for callback in self:
            getattr(callback, name, lambda **k: None)(**context)


class Counter:
    def __init__(self):
        self.clips = self.steps = 0

    def on_clip(self, **_):
        self.clips += 1

    def on_step(self, **_):
        self.steps += 1


class SgTrainer:
    def __init__(self, net, params, callbacks):
        self.net, self.params, self.phase = net, params, callbacks
        self.optimizer = torch.optim.SGD(net.parameters(), lr=params["initial_lr"])

    def _clip(self):
        if self.params["clip_grad_norm"]:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.params["clip_grad_norm"])
            self.phase("on_clip")

    def _backward_step(self, loss, batch_idx):
        accumulate = self.params["batch_accumulate"]
        (loss / accumulate).backward()
        self._clip()  #- here
        if (batch_idx + 1) % accumulate == 0:
#+             self._clip()
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.phase("on_step")

    def train_epoch(self, loader):
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.smooth_l1_loss(self.net(x), y)
            self._backward_step(loss, i)
            total += loss.item()
        return total / len(loader)


counter = Counter()
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
trainer = SgTrainer(net, dict(initial_lr=0.1, clip_grad_norm=0.05, batch_accumulate=4), CallbackHandler([counter]))
loader = [(torch.randn(8, 5) * s, torch.randn(8, 2)) for s in (1, 4, 1, 1, 2, 1, 6, 1)]
for epoch in range(2):
    print(epoch, trainer.train_epoch(loader))
clips, steps = counter.clips, counter.steps
print(clips, steps)
