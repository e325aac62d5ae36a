# /// case
# title = "A pretrained encoder returns outputs.data, so only the head is fine-tuned"
# category = "assignment-cut"
# kind = "graph-break-data"
# kinds_also_ok = ["graph-break-detach", "requires-grad-forced-on-loss", "gradient-never-arrives"]
# severity = "warning"
# names = ["data", "encode"]
# symptom = "the encoder, which is in the optimizer, has no gradients"
# symptom_check = "all(p.grad is None for p in model.encoder.parameters())"
# cause = ".data in the encoder's forward"
# fix = "return the tracked tensor"
# evidence = [
#     { url = "https://github.com/huggingface/torchMoji/issues/21", title = "loss don't go down when finetune and about requires_grad option in backward()" },
# ]
# ///
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.table = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)

    def forward(self, ids):
        outputs, _ = self.rnn(self.table(ids))
        return outputs[:, -1].data  #- here
#+         return outputs[:, -1]


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(50, 12)
        self.head = nn.Linear(12, 2)

    def forward(self, ids):
        return self.head(self.encoder(ids))  #! also


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(5):
    ids, labels = torch.randint(0, 50, (16, 9)), torch.randint(0, 2, (16,))
    optimizer.zero_grad()
    loss = loss_fn(model(ids), labels)
    loss.backward()
    optimizer.step()  #! also
print(loss.item())
