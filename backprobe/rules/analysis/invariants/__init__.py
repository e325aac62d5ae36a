"""What the invariants read of a record, and how their states are put together."""
