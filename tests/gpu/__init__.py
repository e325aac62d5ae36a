"""The GPU side, proven part by part on CUDA, or on a stand-in where there is none; `python -m tests.gpu`."""
