"""The levels of isolation: what a machine can give, and the proof that it holds."""
