"""The worker process: executes runs, and takes back those of workers that died."""
