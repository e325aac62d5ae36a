# /// case
# title = "The gradients are cleared before each micro-batch of the accumulation"
# category = "accumulation"
# kind = "zero-grad-every-micro-batch"
# kinds_also_ok = ["zero-grad-in-accumulation", "accumulated-gradients-discarded", "misplaced-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "accumulate", "micro_step"]
# symptom = "each update uses only the last of four micro-batches, at a quarter of its gradient"
# symptom_check = "(lambda seen: seen[4] < 1.5 * seen[2])((trainer.optimizer.zero_grad(), trainer.micro_step(0, data.mel[:4], data.labels[:4]), trainer.grad_norm(), trainer.micro_step(1, data.mel[:4], data.labels[:4]), trainer.grad_norm()))"
# cause = "zero_grad at the head of micro_step throws away what the micro-batches before have left."
# fix = "zero_grad after the step only"
# ///
import torch
import torch.nn as nn


class Recogniser(nn.Module):
    def __init__(self, mels=20, width=32, symbols=11):
        super().__init__()
        self.subsample = nn.Conv1d(mels, width, 3, stride=2, padding=1)
        self.rnn = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.project = nn.Linear(2 * width, symbols)

    def forward(self, mel):
        frames = torch.relu(self.subsample(mel.transpose(1, 2))).transpose(1, 2)
        return self.project(self.rnn(frames)[0]).log_softmax(-1)


class Utterances:
    def __init__(self, count, mels=20, frames=32, digits=4):
        self.templates = torch.randn(11, mels)
        self.labels = torch.randint(1, 11, (count, digits))
        spoken = self.templates[self.labels].repeat_interleave(frames // digits, 1)
        self.mel = spoken + 0.3 * torch.randn_like(spoken)

    def epoch(self, size):
        order = torch.randperm(len(self.mel))
        return [(self.mel[rows], self.labels[rows]) for rows in order.split(size)]


class Trainer:
    def __init__(self, model, accumulate=4, lr=2e-3):
        self.model, self.accumulate = model, accumulate
        self.criterion = nn.CTCLoss(blank=0, zero_infinity=True)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.history = []

    def grad_norm(self):
        return torch.cat([p.grad.flatten() for p in self.model.parameters() if p.grad is not None]).norm().item()

    def micro_step(self, index, mel, labels):
        self.optimizer.zero_grad()  #- here
        log_probs = self.model(mel).transpose(0, 1)
        frames = torch.full((len(mel),), log_probs.size(0))
        digits = torch.full((len(mel),), labels.size(1))
        loss = self.criterion(log_probs, labels, frames, digits)
        (loss / self.accumulate).backward()  #! also
        if (index + 1) % self.accumulate == 0:  #! also
            self.history.append((loss.item(), self.grad_norm()))
            self.optimizer.step()  #! also
#+             self.optimizer.zero_grad()

    def fit(self, data, epochs, size):
        for epoch in range(epochs):
            for index, (mel, labels) in enumerate(data.epoch(size)):
                self.micro_step(index, mel, labels)
            print("epoch", epoch, "loss %.3f norm %.3f" % self.history[-1])


torch.manual_seed(21)
data = Utterances(64)
trainer = Trainer(Recogniser())
trainer.fit(data, epochs=8, size=4)
