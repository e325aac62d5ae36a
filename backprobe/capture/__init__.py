"""An unmodified PyTorch program in, a record out. The only folder that imports torch."""

from backprobe.capture.launch import NoEntry, run_files, run_folder, run_module, run_path, run_source
from backprobe.capture.options import Caps, Options
from backprobe.capture.warm import warm
from backprobe.capture.writer import Sink
from backprobe.record import End

__all__ = [
    "Caps",
    "End",
    "NoEntry",
    "Options",
    "Sink",
    "run_files",
    "run_folder",
    "run_module",
    "run_path",
    "run_source",
    "warm",
]
