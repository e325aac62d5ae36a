"""The trusted side: starts children, counts, caps, kills, decides."""
