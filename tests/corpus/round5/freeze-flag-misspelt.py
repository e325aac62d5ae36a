# /// case
# title = "The features are frozen by an attribute that does not exist"
# category = "flags"
# kind = "misspelt-attribute"
# kinds_also_ok = ["backbone-not-frozen", "requires-grad-without-effect"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["require_grad"]
# symptom = "the pretrained features train along"
# symptom_check = "not torch.equal(before, features[0].weight)"
# cause = "require_grad is a new attribute without effect"
# fix = "requires_grad"
# evidence = [
#     { url = "https://github.com/udacity/deep-learning-v2-pytorch/issues/12", title = "CNN - Transfer learning notebook - `require_grad` needs to be requires_grad`" },
#     { url = "https://github.com/codertimo/BERT-pytorch/pull/104", title = "Fix require_grad typo" },
# ]
# ///
import torch
from torch import nn, optim

torch.manual_seed(6)


def load_pretrained():
    # stands for a downloaded network
    return nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2))


features = load_pretrained()
before = features[0].weight.detach().clone()

# freeze training for all "features" layers
for param in features.parameters():
    param.require_grad = False  #- here
#+     param.requires_grad = False

classifier = nn.Linear(32, 5)
vgg = nn.Sequential(features, nn.Flatten(), classifier)
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(vgg.parameters(), lr=0.01)  #- also
#+ optimizer = optim.SGD(classifier.parameters(), lr=0.01)

images, labels = torch.randn(60, 1, 8, 8), torch.randint(0, 5, (60,))
for epoch in range(2):
    train_loss = 0.0
    for batch_i in range(0, 60, 20):
        data, target = images[batch_i:batch_i + 20], labels[batch_i:batch_i + 20]
        optimizer.zero_grad()
        loss = criterion(vgg(data), target)
        loss.backward()
        optimizer.step()
        train_loss += loss.item()
    print(epoch, train_loss / 3)
