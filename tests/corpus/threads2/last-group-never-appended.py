# /// case
# title = "Third group of parameters is built and not appended"
# category = "optimizer"
# kind = "parameters-not-in-optimizer"
# severity = "warning"
# names = ["params", "parameters", "crf", "fc", "append"]
# symptom = "the CRF and the tag layer keep their first values"
# symptom_check = "not trainer.model.crf_transitions.any().item()"
# cause = "the last dictionary is not appended"
# fix = "parameters.append(params)"
# evidence = [
#     { url = "https://github.com/zjunlp/HVPNeT/issues/5", title = "Not putting parameters into optimizer but still trainable" },
# ]
# ///
import torch
import torch.nn as nn


class Tagger(nn.Module):
    def __init__(self, vocab=40, dim=12, tags=5):
        super().__init__()
        self.bert = nn.Embedding(vocab, dim)
        self.encoder_conv = nn.Conv1d(dim, dim, 3, padding=1)
        self.fc = nn.Linear(dim, tags)
        self.crf_transitions = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, tokens, tags):
        h = self.bert(tokens)
        h = h + self.encoder_conv(h.transpose(1, 2)).transpose(1, 2)
        emission = self.fc(torch.tanh(h))
        alpha = emission[:, 0]
        for t in range(1, tokens.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.crf_transitions, 1) + emission[:, t]
        gold = emission.gather(2, tags.unsqueeze(2)).sum((1, 2))
        gold = gold + self.crf_transitions[tags[:, :-1], tags[:, 1:]].sum(1)
        return (torch.logsumexp(alpha, 1) - gold).mean()


class NERTrainer:
    def __init__(self, model, lr=3e-3):
        self.model, self.lr = model, lr
        self.before_train()

    def before_train(self):
        parameters = []
        params = {"lr": self.lr, "weight_decay": 1e-2}
        params["params"] = [p for n, p in self.model.named_parameters() if "bert" in n]
        parameters.append(params)

        params = {"lr": 3e-2, "weight_decay": 1e-2}
        params["params"] = [p for n, p in self.model.named_parameters() if "encoder_conv" in n]
        parameters.append(params)

        params = {"lr": 5e-2, "weight_decay": 1e-2}  #! also
        params["params"] = [p for n, p in self.model.named_parameters() if "crf" in n or n.startswith("fc")]  #! here
#+         parameters.append(params)
        self.optimizer = torch.optim.AdamW(parameters)  #! here

    def train(self, steps=5):
        for _ in range(steps):
            tokens, tags = torch.randint(0, 40, (6, 9)), torch.randint(0, 5, (6, 9))
            loss = self.model(tokens, tags)
            self.model.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


torch.manual_seed(54)
trainer = NERTrainer(Tagger())
print(trainer.train())
