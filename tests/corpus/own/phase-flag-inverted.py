# /// case
# category = "mode"
# kind = "graph-break-no-grad"
# severity = "error"
# names = ["loss"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = {phase: [(torch.randn(6, 5), torch.randint(0, 2, (6,))) for _ in range(2)] for phase in ("train", "val")}

for epoch in range(2):
    for phase in ["train", "val"]:
        model.train(phase == "train")
        for inputs, labels in data[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase != "train"):  #- here
#+             with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)  #! also
                loss = nn.functional.cross_entropy(outputs, labels)  #! also
            if phase == "train":
                loss.backward()  #! also
                optimizer.step()
