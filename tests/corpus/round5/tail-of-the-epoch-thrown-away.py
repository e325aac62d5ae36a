# /// case
# title = "The last incomplete window of each epoch is cleared away"
# category = "accumulation"
# kind = "gradients-cleared-unused"
# kinds_also_ok = ["incomplete-accumulation-dropped"]
# severity = "warning"
# names = ["zero_grad", "accumulate", "last_opt_step"]
# symptom = "the gradients of the epoch's last batches are never stepped"
# symptom_check = "lost > 0"
# cause = "zero_grad at the start of the epoch, while a window is open"
# fix = "do not clear there; steps clear"
# evidence = [
#     { url = "https://github.com/ultralytics/ultralytics/pull/11217", title = "fix double zero_grad call messing up gradient accumulation" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(64)


class BaseTrainer:
    def __init__(self, model, loader, batch_size=8, nbs=32, epochs=3):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.accumulate = max(round(nbs / batch_size), 1)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.unused = []

    def pending(self):
        return sum(p.grad.abs().sum().item() for p in self.model.parameters() if p.grad is not None)

    def optimizer_step(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=10.0)
        self.optimizer.step()
        self.optimizer.zero_grad()

    def train(self):
        nb = len(self.loader)
        last_opt_step = -1
        for epoch in range(self.epochs):
            self.model.train()
            self.unused.append(self.pending())  #-
            self.optimizer.zero_grad()  #- here
#+             self.unused.append(0.0)
            tloss = 0.0
            for i, (img, target) in enumerate(self.loader):
                ni = i + nb * epoch  # number of batches seen
                box, cls = self.model(img).split([4, 3], dim=1)
                loss = (box - target[:, :4]).abs().mean() + nn.functional.binary_cross_entropy_with_logits(cls, target[:, 4:])
                (loss / self.accumulate).backward()
                if ni - last_opt_step >= self.accumulate:  #! also
                    self.optimizer_step()
                    last_opt_step = ni
                tloss += loss.item()
            print(epoch, tloss / nb)
        if ni > last_opt_step:
            self.optimizer_step()


head = nn.Sequential(nn.Linear(12, 24), nn.SiLU(), nn.Linear(24, 7))
loader = [(torch.randn(8, 12), torch.cat([torch.rand(8, 4), torch.randint(0, 2, (8, 3)).float()], 1)) for _ in range(10)]
trainer = BaseTrainer(head, loader)
trainer.train()
lost = sum(trainer.unused)
print(lost)
