"""The functions of `os` and `fcntl` as they were when this package was imported.

What is not ours goes to them. While patch() is in force the modules themselves hold our functions,
which would call themselves for ever.
"""

import types
from typing import TYPE_CHECKING

__all__ = ["fcntl", "os"]

if TYPE_CHECKING:
    import fcntl
    import os
else:
    import fcntl as _fcntl
    import os as _os

    def _copy(module: types.ModuleType) -> types.ModuleType:
        copied = types.ModuleType(module.__name__, module.__doc__)
        copied.__dict__.update(vars(module))
        return copied

    os = _copy(_os)
    fcntl = _copy(_fcntl)
