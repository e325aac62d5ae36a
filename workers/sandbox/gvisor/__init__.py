"""Runs in a kernel of their own, by gVisor."""
