"""Libraries that Python programs read data with, over mounts."""
