"""What callers share, and how much of it one may have."""
