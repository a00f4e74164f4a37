"""`python -m directfuse`: the command line."""

from directfuse._cli import main

if __name__ == "__main__":
    main("python -m directfuse")
