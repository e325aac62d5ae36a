# /// case
# title = "The adversarial text perturbation reads .grad of the embedded tokens"
# category = "leaf"
# kind = "grad-of-non-leaf"
# kinds_also_ok = ["missing-retain-grad", "non-leaf-grad-is-none"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["embedded", "grad", "retain_grad"]
# symptom = "no perturbation is ever applied"
# symptom_check = "trainer.perturbed == 0"
# cause = "embedded is the result of a look-up and keeps no .grad without retain_grad(), so that the branch for None is always taken."
# fix = "embedded.retain_grad()"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class TextNet(nn.Module):
    def __init__(self, vocab=50, width=14, classes=3):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, classes)

    def classify(self, embedded):
        return self.out(self.rnn(embedded)[0].amax(1))


class AdversarialTrainer:
    def __init__(self, model, epsilon=0.3):
        self.model, self.epsilon = model, epsilon
        self.optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        self.perturbed = 0

    def direction(self, embedded):
        gradient = embedded.grad  #! here
        if gradient is None:  #! also
            return None
        return self.epsilon * gradient / gradient.norm(dim=-1, keepdim=True).clamp(min=1e-8)

    def step(self, tokens, label):
        self.optimizer.zero_grad()
        embedded = self.model.embedding(tokens)  #! here
#+         embedded.retain_grad()
        loss = F.cross_entropy(self.model.classify(embedded), label)
        loss.backward()  #! here
        delta = self.direction(embedded)
        if delta is not None:
            again = self.model.embedding(tokens) + delta
            F.cross_entropy(self.model.classify(again), label).backward()
            self.perturbed += 1
        self.optimizer.step()
        return loss.item()


torch.manual_seed(64)
tokens = torch.randint(0, 50, (60, 8))
label = tokens.max(1).values.sub(35).clamp(0, 14) // 5
trainer = AdversarialTrainer(TextNet())
for epoch in range(4):
    for rows in torch.randperm(60).split(20):
        loss = trainer.step(tokens[rows], label[rows])
    print(epoch, loss, trainer.perturbed)
