"""A Lightning training: watched, raising, and while something else is watched."""

import logging
import warnings

import torch
from lightning import pytorch
from loops import data, whole
from torch import nn

import backprobe
from backprobe.integrations.lightning import WatchCallback
from tests.support.frame_server import FrameServer

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.simplefilter("ignore")


class Net(pytorch.LightningModule):
    def __init__(self, fails):
        super().__init__()
        self.body = nn.Linear(3, 1)
        self.fails = fails

    def training_step(self, batch, at):
        if self.fails and at == 2:
            raise KeyError("theirs")
        return nn.functional.mse_loss(self.body(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def trained(callback, fails=False):
    torch.manual_seed(0)
    net = Net(fails)
    trainer = pytorch.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, callbacks=[] if callback is None else [callback],
    )
    trainer.fit(net, torch.utils.data.DataLoader(data(), batch_size=None))
    return [one.detach().clone() for one in net.parameters()]


service = FrameServer()
callback = WatchCallback(url=service.url, report=False)
plain, watched = trained(None), trained(callback)
assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
record = whole(callback.watching, {"model.body.weight", "model.body.bias"})
run = callback.watching.health().run
assert service.record(run).tensors == record.tensors
assert run in service.ends
service.stop()
print("watched")

callback = WatchCallback(report=False)
try:
    trained(callback, fails=True)
except KeyError:
    record = callback.watching.record
    assert (record.end.ending, record.raised[-1].type) == ("raised", "KeyError")
    print("raised")

callback = WatchCallback(report=False)
with backprobe.watch(nn.Linear(1, 1), report=False) as watching:
    trained(callback)
assert (callback.watching.findings, len(watching.record.backward_calls)) == ((), 4)
print("not watched twice")

try:
    WatchCallback(every=0)
except ValueError as error:
    print(error)
