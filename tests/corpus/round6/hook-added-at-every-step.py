# /// case
# title = "A hook is registered in each step"
# category = "hook"
# kind = "hooks-pile-up"
# kinds_also_ok = ["gradient-vanishes", "hook-not-removed"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["register_hook"]
# symptom = "the encoder's gradients halve with each step"
# symptom_check = "trainer.grad_sizes[-1] < 1e-5"
# cause = "hooks are never removed, and all of them act"
# fix = "register once"
# ///
import torch
import torch.nn as nn


class Trainer:
    def __init__(self, encoder, head, slow=0.5):
        self.encoder, self.head, self.slow = encoder, head, slow
        self.opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05)
        self.grad_sizes = []
#+         for p in encoder.parameters():
#+             p.register_hook(lambda g: g * self.slow)

    def training_step(self, x, y):
        for p in self.encoder.parameters():  #- also
            p.register_hook(lambda g: g * self.slow)  #- here
        loss = nn.functional.cross_entropy(self.head(self.encoder(x).relu()), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.grad_sizes.append(self.encoder.weight.grad.norm().item())
        return loss.item()


torch.manual_seed(63)
trainer = Trainer(nn.Linear(10, 32), nn.Linear(32, 4))
x = torch.randn(200, 10)
y = x[:, :4].argmax(1)
for step in range(25):
    rows = torch.randint(0, 200, (40,))
    value = trainer.training_step(x[rows], y[rows])
print(value, trainer.grad_sizes[0], trainer.grad_sizes[-1])
