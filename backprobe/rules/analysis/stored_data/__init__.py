"""Data: what a program keeps of them, and which statements change them in place."""
