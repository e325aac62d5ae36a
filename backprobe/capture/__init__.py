"""An unmodified PyTorch program in, a record out. The only folder that imports torch."""

from backprobe.capture.options import Caps, Options
from backprobe.capture.output.writer import Sink
from backprobe.capture.program.launch import NoEntry, run_files, run_folder, run_module, run_path, run_source
from backprobe.capture.program.warm_up import warm
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
