"""Modules, optimizers, modes, hooks and the functions of torch that are watched."""
