# /// case
# title = "The saved optimizer state is never loaded"
# category = "optimizer"
# kind = "optimizer-state-not-restored"
# kinds_also_ok = ["resume-incomplete"]
# severity = "warning"
# names = ["resume", "optimizer", "setup"]
# symptom = "after a resume, momentum starts from zero"
# symptom_check = "not torch.allclose(resumed, straight)"
# cause = "resume() runs before the optimizer exists, and its guard skips the state"
# fix = "keep the state until the optimizer is made"
# evidence = [
#     { url = "https://github.com/LibreYOLO/libreyolo/pull/277", title = "fix resume LR inconsistency: defer optimizer state and fast-forward s…" },
# ]
# ///
import torch
import torch.nn as nn


class BaseTrainer:
    def __init__(self, seed):
        torch.manual_seed(seed)
        self.model = nn.Sequential(nn.Linear(6, 12), nn.SiLU(), nn.Linear(12, 4))
        self.optimizer, self.start_epoch = None, 0
        self.resume_state = None

    def setup(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9, nesterov=True)
#+         if self.resume_state is not None:
#+             self.optimizer.load_state_dict(self.resume_state)

    def resume(self, path):
        checkpoint = torch.load(path)
        self.model.load_state_dict(checkpoint["model"])
        self.start_epoch = checkpoint["epoch"] + 1
        if self.optimizer is not None and "optimizer" in checkpoint:  #- here
            self.optimizer.load_state_dict(checkpoint["optimizer"])  #- also
#+         self.resume_state = checkpoint["optimizer"]

    def save(self, path, epoch):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": epoch}, path)

    def train(self, epochs, path=None):
        self.setup()
        for epoch in range(self.start_epoch, epochs):
            g = torch.Generator().manual_seed(epoch)
            for _ in range(5):
                x = torch.randn(16, 6, generator=g)
                loss = nn.functional.smooth_l1_loss(self.model(x), x[:, :4].roll(1, 1))
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if path:
                self.save(path, epoch)
        return self.model[0].weight.detach()


straight = BaseTrainer(seed=0).train(epochs=4)
BaseTrainer(seed=0).train(epochs=2, path="last.pt")
second = BaseTrainer(seed=1)
second.resume("last.pt")  #! also
resumed = second.train(epochs=4)
print((resumed - straight).abs().max().item())
