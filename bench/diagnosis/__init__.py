"""How well tools diagnose faulty programs, and how quiet they are on correct ones."""
