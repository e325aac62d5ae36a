# /// case
# title = "Soft update mixes the target's weights with themselves"
# category = "identity"
# kind = "target-network-never-updated"
# kinds_also_ok = ["copy-onto-itself", "self-copy"]
# severity = "warning"
# names = ["target_weights", "online_weights", "soft_update"]
# symptom = "the target network never changes"
# symptom_check = "torch.allclose(first, target[0].weight, atol=1e-6)"
# cause = "both terms are the target's weights"
# fix = "the second term is the online network's"
# evidence = [
#     { url = "https://github.com/ageron/handson-ml2/issues/89", title = "Chapter 18 - soft update in Double DQN" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(62)


def make_model():
    return nn.Sequential(nn.Linear(4, 32), nn.ELU(), nn.Linear(32, 2))


model, target = make_model(), make_model()
target.load_state_dict(model.state_dict())
for p in target.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.NAdam(model.parameters(), lr=6e-3)
discount_factor, n_outputs = 0.95, 2


def training_step(batch_size=32):
    states, next_states = torch.randn(batch_size, 4), torch.randn(batch_size, 4)
    actions, rewards = torch.randint(0, 2, (batch_size,)), torch.rand(batch_size)
    runs = (torch.rand(batch_size) > 0.1).float()
    with torch.no_grad():
        best_next = model(next_states).argmax(1)
    next_best_q = (target(next_states) * F.one_hot(best_next, n_outputs)).sum(1)
    target_q = rewards + runs * discount_factor * next_best_q
    q_values = (model(states) * F.one_hot(actions, n_outputs)).sum(1)
    loss = F.smooth_l1_loss(q_values, target_q)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def soft_update(keep=0.99):
    target_weights = target.state_dict()
    online_weights = model.state_dict()
    for name in target_weights:
        target_weights[name] = keep * target_weights[name] + (1 - keep) * target_weights[name]  #- here
#+         target_weights[name] = keep * target_weights[name] + (1 - keep) * online_weights[name]
    target.load_state_dict(target_weights)  #! also
    return len(online_weights)


first = target[0].weight.clone()
for episode in range(20):
    training_step()
    if episode > 4:
        soft_update()
print((model[0].weight - target[0].weight).abs().max().item())
