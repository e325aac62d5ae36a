"""What this process tells of itself: metrics and a log line for each request."""
