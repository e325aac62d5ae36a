"""What one process does for all: expired leases, lost wake-ups, deliveries, rejudging."""
