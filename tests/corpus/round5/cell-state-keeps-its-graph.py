# /// case
# title = "Of an LSTM's state only the hidden part is detached"
# category = "retention"
# kind = "state-not-detached"
# kinds_also_ok = ["backward-twice", "missing-detach"]
# severity = "error"
# names = ["hiddens", "detach"]
# symptom = "the second window walks back into the first one's freed graph"
# raises = "RuntimeError"
# raises_message = "backward through the graph a second time"
# cause = "the cell state still has its graph"
# fix = "detach both"
# evidence = [
#     { url = "https://github.com/Lightning-AI/pytorch-lightning/pull/8145", title = "Fix truncated_bptt_steps hiddens detach() and improve docs" },
# ]
# ///
import torch
import torch.nn as nn


class SequenceModel(nn.Module):
    def __init__(self, n_in=3, hidden=16):
        super().__init__()
        self.lstm = nn.LSTM(n_in, hidden, batch_first=True)
        self.out = nn.Linear(hidden, n_in)

    def training_step(self, batch, hiddens):
        x, y = batch
        out, hiddens = self.lstm(x, hiddens)
        return {"loss": nn.functional.mse_loss(self.out(out), y), "hiddens": hiddens}


class TbpttLoop:
    def __init__(self, model, truncated_bptt_steps):
        self.model, self.steps = model, truncated_bptt_steps
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

    def splits(self, x, y):
        return zip(x.split(self.steps, dim=1), y.split(self.steps, dim=1))

    def run(self, x, y):
        hiddens, losses = None, []
        for split in self.splits(x, y):
            result = self.model.training_step(split, hiddens)
            self.optimizer.zero_grad()
            result["loss"].backward()  #! also
            self.optimizer.step()
            h, c = result["hiddens"]
            hiddens = (h.detach(), c)  #- here
#+             hiddens = (h.detach(), c.detach())
            losses.append(result["loss"].item())
        return losses


torch.manual_seed(48)
t = torch.arange(121) / 6.0
series = torch.stack([t.sin(), t.cos(), (2 * t).sin()], -1).expand(4, -1, -1) + 0.05 * torch.randn(4, 121, 3)
loop = TbpttLoop(SequenceModel(), truncated_bptt_steps=20)
for epoch in range(2):
    print(epoch, loop.run(series[:, :-1], series[:, 1:])[-1])
