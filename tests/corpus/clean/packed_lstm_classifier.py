import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Words(Dataset):
    def __init__(self, n):
        self.rows = [torch.randint(1, 30, (int(k),)) for k in torch.randint(3, 9, (n,))]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return row, int((row > 15).float().mean() > 0.5)


def collate(batch):
    rows, labels = zip(*batch)
    lengths = torch.tensor([len(r) for r in rows])
    return pad_sequence(rows, batch_first=True), lengths, torch.tensor(labels, dtype=torch.float32)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(30, 12, padding_idx=0)
        self.lstm = nn.LSTM(12, 16, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.2)
        self.out = nn.Linear(32, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.out(self.drop(torch.cat([hidden[-2], hidden[-1]], dim=1))).squeeze(1)


def run(model, loader, optimizer=None):
    model.train(optimizer is not None)
    correct = total = 0
    with torch.set_grad_enabled(optimizer is not None):
        for tokens, lengths, labels in loader:
            logits = model(tokens, lengths)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            correct += ((logits > 0).float() == labels).sum().item()
            total += len(labels)
    return correct / total


model = Classifier()
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
train = DataLoader(Words(64), batch_size=16, shuffle=True, collate_fn=collate)
test = DataLoader(Words(32), batch_size=16, collate_fn=collate)
for epoch in range(3):
    print(epoch, run(model, train, optimizer), run(model, test))
