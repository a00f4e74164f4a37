"""File systems written in Python that come with the package."""
