"""Runs: submitted, listed, followed, compared; programs; recorders."""
