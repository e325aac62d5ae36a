# /// case
# title = "The optimizer is built before the embeddings are replaced by larger ones"
# category = "optimizer"
# kind = "optimizer-built-before-module-replaced"
# kinds_also_ok = ["stale-parameters-in-optimizer", "parameters-not-in-optimizer", "optimizer-created-too-early"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["optimizer", "resize_token_embeddings", "embed", "head"]
# symptom = "only the recurrent layer and the norm learn; the new embeddings and head stay as they were and their gradients pile up"
# symptom_check = "not {id(model.embed.weight), id(model.head.weight)} & {id(p) for g in optimizer.param_groups for p in g['params']}"
# cause = "The optimizer holds the tensors of the modules that were thrown away."
# fix = "resize first, then build the optimizer"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class TinyLM(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        return self.head(self.norm(self.rnn(self.embed(ids))[0]))

    @torch.no_grad()
    def resize_token_embeddings(self, extra):
        old_embed, old_head = self.embed, self.head
        vocab, dim = old_embed.weight.shape
        self.embed = nn.Embedding(vocab + extra, dim)  #! also
        self.head = nn.Linear(dim, vocab + extra)  #! also
        self.embed.weight[:vocab] = old_embed.weight
        self.embed.weight[vocab:] = old_embed.weight.mean(0)
        self.head.weight[:vocab] = old_head.weight
        self.head.bias[:vocab] = old_head.bias


class Tokenizer:
    def __init__(self, words):
        self.index = {word: i for i, word in enumerate(words)}

    def add_special_tokens(self, tokens):
        for token in tokens:
            self.index[token] = len(self.index)
        return len(tokens)

    def encode(self, turns):
        return torch.tensor([[self.index[w] for w in turn] for turn in turns])


def dialogues(words, count):
    for _ in range(count):
        start = int(torch.randint(len(words) - 6, ()))
        yield ["<user>", *words[start:start + 3], "<bot>", *words[start + 3:start + 6], "<end>"]


def main(steps=50):
    words = [f"w{i}" for i in range(40)]
    tokenizer = Tokenizer(words)
    model = TinyLM(len(words))
#+     model.resize_token_embeddings(tokenizer.add_special_tokens(["<user>", "<bot>", "<end>"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)  #! here
    model.resize_token_embeddings(tokenizer.add_special_tokens(["<user>", "<bot>", "<end>"]))  #- here
    for step in range(steps):
        ids = tokenizer.encode(list(dialogues(words, 16)))
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()  #! also
        loss.backward()
        optimizer.step()  #! also
        if step % 10 == 0:
            print(step, round(loss.item(), 4))
    return model, optimizer


torch.manual_seed(23)
model, optimizer = main()
