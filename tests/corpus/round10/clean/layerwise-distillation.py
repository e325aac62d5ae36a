from contextlib import ExitStack, contextmanager

import torch
import torch.nn as nn
import torch.nn.functional as F


def transformer(dim, layers, vocab=64, classes=4):
    layer = nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.1, batch_first=True)
    return nn.ModuleDict({
        "embed": nn.Embedding(vocab, dim),
        "body": nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
        "head": nn.Linear(dim, classes),
    })


def classify(model, ids):
    return model["head"](model["body"](model["embed"](ids)).mean(1))


@contextmanager
def recorded(model, layers):
    seen = {}
    with ExitStack() as stack:
        for index in layers:
            handle = model["body"].layers[index].register_forward_hook(
                lambda module, args, output, index=index: seen.__setitem__(index, output)
            )
            stack.callback(handle.remove)
        yield seen


def distillation_losses(teacher, student, adapters, ids, temperature=3.0):
    with torch.no_grad(), recorded(teacher, [1, 3]) as wanted:
        soft_targets = (classify(teacher, ids) / temperature).log_softmax(-1)
    with recorded(student, [0, 1]) as given:
        logits = classify(student, ids)
    hidden = sum(F.mse_loss(adapter(given[s]), wanted[t]) for adapter, s, t in zip(adapters, (0, 1), (1, 3)))
    soft = F.kl_div((logits / temperature).log_softmax(-1), soft_targets, reduction="batchmean", log_target=True)
    return soft * temperature ** 2, hidden


def reviews(count):
    labels = torch.randint(0, 4, (count,))
    ids = torch.randint(0, 64, (count, 8))
    ids[:, ::2] = labels[:, None] * 16 + torch.randint(0, 16, (count, 4))
    return ids, labels


torch.manual_seed(52)
teacher, student = transformer(32, 4), transformer(16, 2)
opt = torch.optim.Adam(teacher.parameters(), lr=2e-3)
for _ in range(30):
    ids, labels = reviews(32)
    opt.zero_grad(set_to_none=True)
    F.cross_entropy(classify(teacher, ids), labels).backward()
    opt.step()
opt.zero_grad()
teacher.eval()
adapters = nn.ModuleList(nn.Linear(16, 32) for _ in range(2))
opt = torch.optim.Adam([*student.parameters(), *adapters.parameters()], lr=4e-3)
for step in range(40):
    ids, _ = reviews(24)
    soft, hidden = distillation_losses(teacher, student.train(), adapters, ids)
    loss = soft + 0.5 * hidden
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(step, round(soft.item(), 4), round(hidden.item(), 4))
