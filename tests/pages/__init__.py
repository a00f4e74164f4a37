"""What the pages show, done as a reader does it."""
