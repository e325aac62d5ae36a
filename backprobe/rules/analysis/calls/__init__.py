"""Functions of the program: what their callers hand in, and what they hand back."""
