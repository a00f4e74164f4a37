"""Makes all of benchmarks/results, and from it README.md's table and figure. Under ten minutes.

    python benchmarks/results.py [--budget SECONDS] [--directory DIRECTORY]

On a quiet machine, as root for the kernel's mounts, with fio, git, gcc and matplotlib
(pip install directfuse[plot]); what is missing is left out, and named in the report.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from directfuse import _paths

RESULTS = Path(__file__).parent / "results"
WHAT = [
    *("--only", "micro", "--only", "storm", "--threads", "1,2", "--processes", "2"),
    *("--programs", "--fio", "--figures", "--breakdown"),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--budget", type=float, default=560, help="seconds  [default: 560]")
    parser.add_argument("--directory", type=Path, default=RESULTS, help="instead of results/")
    options = parser.parse_args()
    command = [*_paths.COMMAND, "bench", *WHAT]
    command += ["--budget", str(options.budget), "--report", str(options.directory)]
    done = subprocess.run(command, check=False)
    if done.returncode == 0 and options.directory == RESULTS:
        readme = Path(__file__).with_name("readme.py")
        done = subprocess.run([sys.executable, str(readme)], check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
