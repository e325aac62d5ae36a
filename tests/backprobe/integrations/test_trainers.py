"""The training loops of Lightning, transformers and Accelerate, watched: tiny models, the real libraries."""

from __future__ import annotations

import logging
import warnings

import pytest
import torch
from torch import nn

import backprobe
from backprobe.capture.taps import Active
from backprobe.record import check
from tests.support.frame_server import FrameServer

STEPS = 4


@pytest.fixture(autouse=True)
def _place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKPROBE_HOME", str(tmp_path))
    yield
    assert Active.recorder is None, "nothing is watched any more"


@pytest.fixture
def service():
    one = FrameServer()
    yield one
    one.stop()


def data():
    return [(torch.full((2, 3), float(n)), torch.ones(2, 1)) for n in range(STEPS)]


def whole(watching, names):
    """The record is good, and has the parameters and the steps of the loop."""
    record = watching.record
    check(record)
    assert record.end is not None
    assert record.end.own_errors == 0, record.end.own_error
    assert {row.fqn for row in record.tensors if row.role == "parameter"} == names
    assert [row.kind for row in record.optimizer_events].count("step") == STEPS
    assert len(record.steps) == STEPS
    return record


@pytest.fixture(scope="module")
def lightning():
    from lightning import pytorch

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    return pytorch


def trained(lightning, callback, fails=False):
    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(3, 1)

        def training_step(self, batch, at):
            if fails and at == 2:
                raise KeyError("theirs")
            return nn.functional.mse_loss(self.body(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    torch.manual_seed(0)
    net = Net()
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[] if callback is None else [callback],
    )  # fmt: skip
    loader = torch.utils.data.DataLoader(data(), batch_size=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's own, of versions and of loaders' workers
        trainer.fit(net, loader)
    return [one.detach().clone() for one in net.parameters()]


def test_a_lightning_training_is_watched_and_its_numbers_stay(lightning, service):
    from backprobe.integrations.lightning import WatchCallback

    callback = WatchCallback(url=service.url, report=False)
    plain, watched = trained(lightning, None), trained(lightning, callback)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    record = whole(callback.watching, {"model.body.weight", "model.body.bias"})
    run = callback.watching.health().run
    assert service.record(run).tensors == record.tensors
    assert run in service.ends


def test_a_lightning_training_that_raises_tells_it(lightning):
    from backprobe.integrations.lightning import WatchCallback

    callback = WatchCallback(report=False)
    with pytest.raises(KeyError, match="theirs"):
        trained(lightning, callback, fails=True)
    record = callback.watching.record
    assert (record.end.ending, record.raised[-1].type) == ("raised", "KeyError")


def test_an_error_of_ours_does_not_end_the_training(lightning, caplog):
    from backprobe.integrations.lightning import WatchCallback

    callback = WatchCallback(report=False)
    with backprobe.watch(nn.Linear(1, 1), report=False), caplog.at_level(logging.WARNING, "backprobe"):
        trained(lightning, callback)
    assert "this training is not watched: RuntimeError" in caplog.text
    assert callback.watching is None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 1)

    def forward(self, x, labels):
        return {"loss": nn.functional.mse_loss(self.body(x), labels)}


def test_transformers_trainer_is_watched(tmp_path):
    from transformers import Trainer, TrainingArguments

    from backprobe.integrations.transformers import WatchCallback

    rows = [{"x": torch.ones(3) * n, "labels": torch.ones(1)} for n in range(2 * STEPS)]
    arguments = TrainingArguments(
        output_dir=str(tmp_path), per_device_train_batch_size=2, num_train_epochs=1, report_to=[], use_cpu=True,
        save_strategy="no", disable_tqdm=True, logging_strategy="no", dataloader_pin_memory=False,
    )  # fmt: skip
    callback = WatchCallback(report=False)
    Trainer(model=Net(), args=arguments, train_dataset=rows, callbacks=[callback]).train()
    whole(callback.watching, {"model.body.weight", "model.body.bias"})


def test_an_accelerate_loop_is_watched():
    from accelerate import Accelerator

    from backprobe.integrations.accelerate import watch

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    net = Net()
    model, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.01))
    with watch(accelerator, model, optimizer, report=False) as watching:
        for x, y in data():
            optimizer.zero_grad()
            accelerator.backward(model(x, y)["loss"])
            optimizer.step()
    whole(watching, {"model.body.weight", "model.body.bias"})


def test_an_option_that_cannot_be_is_refused_where_it_is_written(lightning):
    from backprobe.integrations.lightning import WatchCallback
    from backprobe.integrations.transformers import WatchCallback as TrainerWatch

    for callback in (WatchCallback, TrainerWatch):
        with pytest.raises(ValueError, match="every=0"):
            callback(every=0)
