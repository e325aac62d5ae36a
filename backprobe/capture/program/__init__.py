"""Runs a program under capture: from its source to its exit, in this process, a fork or a child."""
