"""Health, metrics, workers, queues, usage."""
