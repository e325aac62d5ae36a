"""Ids of runs that a recorder makes itself: see `backprobe.run_id`."""

from backprobe.run_id import new_run_id

__all__ = ["new_run_id"]
