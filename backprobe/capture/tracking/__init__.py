"""What is followed while a program runs: moments, statements, steps, exceptions and warnings."""
