"""Mount servers: lives, forks, faults."""
