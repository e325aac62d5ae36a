"""BP104 input-without-requires-grad."""

PROGRAMS = {
    "an attack: what the model gives has no name": """
import torch

def attack(victim, image, label):
    image = image.clone()
    loss = torch.nn.functional.cross_entropy(victim(image), label)
    loss.backward()
    return image + 0.1 * image.grad.sign()  # <- BP104

victim = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
attack(victim, torch.ones(2, 4), torch.tensor([0, 2]))
""",
    "an attack that is right": """
import torch

def attack(victim, image, label):
    image = image.clone().requires_grad_()
    loss = torch.nn.functional.cross_entropy(victim(image), label)
    loss.backward()
    return image + 0.1 * image.grad.sign()

victim = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
attack(victim, torch.ones(2, 4), torch.tensor([0, 2]))
""",
    "what the model gives has no name, and the program asks": """
import torch

victim = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
image = torch.ones(2, 4)
loss = torch.nn.functional.cross_entropy(victim(image), torch.tensor([0, 2]))
loss.backward()
if image.grad is not None:
    print(image.grad.sign())
""",
    "another input went in, without a name": """
import torch

victim = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
image, shown = torch.ones(2, 4), torch.ones(2, 4)
loss = torch.nn.functional.cross_entropy(victim(image), torch.tensor([0, 2]))
loss.backward()
print(shown.grad)
""",
}
