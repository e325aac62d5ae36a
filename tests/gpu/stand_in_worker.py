"""`backprobe worker --queue gpu` where no GPU is: all of it but the one question to the device.

Started by `worker.py` in place of the command; it takes no arguments and is configured by the environment.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

from store.database.settings import StoreSettings
from workers import process
from workers.sandbox.remote.boot import exec_keeper
from workers.sandbox.supervisor.supervisor import Supervisor
from workers.settings import WorkerSettings

DEVICE: Final = Path(__file__).with_name("stand_in_device.py")

if __name__ == "__main__":
    settings = WorkerSettings.from_environment()
    boot = partial(exec_keeper, settings.visible_devices, settings.gpu_memory_fraction, (str(DEVICE),))
    with Supervisor(boot, isolation={"executor": False}, gpu=True) as supervisor:
        process.log_to_stderr()
        sys.exit(process.serve_worker(StoreSettings.from_environment(), settings, "gpu", 1, supervisor))
