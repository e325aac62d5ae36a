"""A training by transformers' Trainer."""

import tempfile

import torch
from loops import STEPS, Net, whole
from transformers import Trainer, TrainingArguments

from backprobe.integrations.transformers import WatchCallback

rows = [{"x": torch.ones(3) * n, "labels": torch.ones(1)} for n in range(2 * STEPS)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, per_device_train_batch_size=2, num_train_epochs=1, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_strategy="no", dataloader_pin_memory=False,
    )
    callback = WatchCallback(report=False)
    Trainer(model=Net(), args=arguments, train_dataset=rows, callbacks=[callback]).train()
whole(callback.watching, {"model.body.weight", "model.body.bias"})
print("watched")
