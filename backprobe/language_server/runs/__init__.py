"""Runs of a program for an editor: on this machine or by a service, and the results that are kept."""
