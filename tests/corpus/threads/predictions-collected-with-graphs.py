# /// case
# title = "Evaluation collects outputs with their graphs"
# category = "evaluation"
# kind = "graph-retained-in-container"
# kinds_also_ok = ["graph-retained-list", "evaluating-in-train-mode"]
# severity = "warning"
# names = ["outputs", "predictions"]
# symptom = "every stored output holds its graph, so memory grows with the set"
# symptom_check = "all(p.grad_fn is not None for p in predictions)"
# cause = "no no_grad() around the evaluation"
# fix = "no_grad()"
# evidence = [
#     { url = "https://github.com/skorch-dev/skorch/issues/218", title = "Should use torch.no_grad in validation_step()?" },
#     { url = "https://github.com/hszhao/semseg/issues/60", title = '"out of memory" during validation' },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(50)
net = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 5))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for _ in range(5):
    opt.zero_grad()
    nn.functional.cross_entropy(net(torch.randn(8, 20)), torch.randint(0, 5, (8,))).backward()
    opt.step()

net.eval()
predictions, targets = [], []
for i in range(40):  #-
    images, labels = torch.randn(8, 20), torch.randint(0, 5, (8,))  #-
    outputs = net(images)  #- also
    predictions.append(outputs)  #- here
    targets.append(labels)  #-
#+ with torch.no_grad():
#+     for i in range(40):
#+         images, labels = torch.randn(8, 20), torch.randint(0, 5, (8,))
#+         outputs = net(images)
#+         predictions.append(outputs)
#+         targets.append(labels)
scores = torch.cat(predictions)
accuracy = (scores.argmax(1) == torch.cat(targets)).float().mean()
print(accuracy.item())
