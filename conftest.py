"""Makes `python -m pytest`, run here, test the installed package.

`python -m` puts the current directory first on the path, where `directfuse/` is the source without
its compiled parts. An editable installation is found before the path is searched; any other would
be shadowed.
"""

import sys
from pathlib import Path

_ROOT = Path(__file__).parent
sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _ROOT]
