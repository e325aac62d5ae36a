# /// case
# title = "NLLLoss gets scores that no log_softmax has normalised"
# category = "loss"
# kind = "nll-without-log-softmax"
# kinds_also_ok = ["logits-as-log-probabilities"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["NLLLoss", "log_softmax", "forward"]
# symptom = "the loss falls below zero without a bound"
# symptom_check = "losses[-1] < -0.5"
# cause = "NLLLoss only picks the entry of the class, so that raw scores can be raised without limit."
# fix = "log_softmax in the forward, or CrossEntropyLoss"
# ///
import torch
from torch import nn


class CharCNN(nn.Module):
    def __init__(self, alphabet: int, classes: int, width: int = 16):
        super().__init__()
        self.embed = nn.Embedding(alphabet, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, size, padding=size // 2) for size in (3, 5))
        self.dropout = nn.Dropout(0.1)
        self.out = nn.Linear(2 * width, classes)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        x = self.embed(text).transpose(1, 2)
        pooled = [conv(x).relu().amax(dim=2) for conv in self.convs]
        scores = self.out(self.dropout(torch.cat(pooled, dim=1)))
        return scores  #- here
#+         return scores.log_softmax(dim=1)


def train(model, text, label, epochs, batch_size):
    criterion = nn.NLLLoss()  #! here
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(len(text)).split(batch_size):
            optimizer.zero_grad()
            loss = criterion(model(text[rows]), label[rows])  #! also
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


torch.manual_seed(1001)
text = torch.randint(1, 28, (96, 20))
text[:, 15:] = 0
label = (text == 5).any(1).long() + (text == 9).any(1).long()
model = CharCNN(28, 3)
losses = train(model, text, label, epochs=5, batch_size=24)
print(losses[0], losses[-1])
