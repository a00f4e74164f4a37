"""The mechanism of `directfuse run`, with every call left to the kernel."""
