"""What leaves the service: webhooks, the events on their way to them, and what became of each."""
