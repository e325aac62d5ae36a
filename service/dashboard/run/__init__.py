"""What the address of a run's page says."""
