"""Fixes of findings, tried by running the program again with them."""
