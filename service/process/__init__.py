"""What this process is and holds: its home, its address, whether runs are executed, streams that hold no thread."""
