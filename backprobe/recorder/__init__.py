"""Sends the record of a training job to a service while the job goes on; never blocks, slows or breaks the job."""
