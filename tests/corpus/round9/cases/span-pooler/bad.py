import torch
import torch.nn as nn


class AttentivePooling(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width) / width ** 0.5)
        self.key = nn.Linear(width, width)

    def forward(self, hidden, mask):
        scores = torch.tanh(self.key(hidden)) @ self.query
        weights = torch.softmax(scores, dim=-1)
        weights = weights.masked_fill_(~mask, 0.0)
        weights = weights / weights.sum(-1, keepdim=True)
        return (weights.unsqueeze(-1) * hidden).sum(1)


class SentimentModel(nn.Module):
    def __init__(self, vocab, width, classes):
        super().__init__()
        self.embed = nn.Embedding(vocab, width, padding_idx=0)
        self.encoder = nn.GRU(width, width // 2, bidirectional=True, batch_first=True)
        self.pool = AttentivePooling(width)
        self.classify = nn.Linear(width, classes)

    def forward(self, ids):
        hidden, _ = self.encoder(self.embed(ids))
        return self.classify(self.pool(hidden, ids != 0))


def pad(sentences):
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=0)


def batches(count, size):
    for _ in range(count):
        sentences = [torch.randint(1, 90, (int(n),)) for n in torch.randint(3, 15, (size,))]
        yield pad(sentences), torch.tensor([int((s < 30).any()) for s in sentences])


def main(seed=41):
    torch.manual_seed(seed)
    model = SentimentModel(90, 20, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    seen, correct = 0, 0
    for ids, labels in batches(15, 24):
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += len(labels)
        correct += (logits.argmax(1) == labels).sum().item()
    print(f"running accuracy {correct / seen:.3f}")


if __name__ == "__main__":
    main()
