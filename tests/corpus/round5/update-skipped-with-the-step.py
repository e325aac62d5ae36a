# /// case
# title = "When a step is skipped, so is the scaler's update"
# category = "numerics"
# kind = "scaler-update-missing"
# severity = "error"
# names = ["scaler", "unscale_", "update"]
# symptom = "the next unscale_ raises"
# raises = "RuntimeError"
# raises_message = "unscale_() has already been called"
# cause = "scaler.update() is under the condition of the step"
# fix = "update in every iteration"
# evidence = [
#     { url = "https://github.com/Haian-Jin/LVSM/pull/19", title = "hotfix(train): resolve GradScaler RuntimeError when skipping optimizer…" },
#     { url = "https://github.com/espnet/espnet/pull/2362", title = "Fix amp" },
# ]
# ///
import torch
import torch.nn as nn

torch.manual_seed(92)
allowed_gradnorm, grad_clip = 0.6, 0.5
model = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.Linear(48, 12))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

cur_train_step, cur_param_update_step = 0, 0
while cur_train_step < 12:
    views = torch.randn(16, 12) * (4.0 if cur_train_step % 5 == 3 else 0.3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rendered = model(views)
    loss = (rendered.float() - views).square().mean()
    cur_train_step += 1
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  #! also
    total_grad_norm = nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    if total_grad_norm > allowed_gradnorm:
        print(f"step {cur_train_step}: grad norm {total_grad_norm:.2f}, skipping")
    else:
        scaler.step(optimizer)
        scaler.update()  #- here
        cur_param_update_step += 1
#+     scaler.update()
print(cur_train_step, cur_param_update_step, loss.item())
