"""The command line, met as a user meets it: as a process."""
