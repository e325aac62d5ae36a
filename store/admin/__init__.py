"""For those who run the service: its figures and health, and a whole database saved, restored, tidied."""
