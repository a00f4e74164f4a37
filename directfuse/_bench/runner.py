"""Runs scripts for the benchmark on one route: started once, so that it can live where the file
system is (inside `directfuse run`, say). Standard library only; it is run as a script.

    runner.py DIRECTORY INPUT

Orders come as lines of JSON, {"name": ..., "before": ..., "script": ...}; each runs in a fresh
directory and is answered with {"seconds": ...} or {"error": ...}.
"""

import json
import os
import shutil
import subprocess
import sys
import time

SECONDS = 120


def run(script: str, directory: str, given: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=directory,
        env={**os.environ, "INPUT": given, "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:] or f"status {done.returncode}")


def once(order: dict[str, str], directory: str, given: str) -> float:
    """Seconds of the script, without what comes before and after it."""
    os.mkdir(directory)
    try:
        if order["before"]:
            run(order["before"], directory, given)
        start = time.perf_counter()
        run(order["script"], directory, given)
        return time.perf_counter() - start
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(directory: str, given: str) -> None:
    print(json.dumps({"ready": True}), flush=True)
    for number, line in enumerate(sys.stdin):
        try:
            seconds = once(json.loads(line), os.path.join(directory, str(number)), given)
            answer: dict[str, object] = {"seconds": seconds}
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
