"""Runs scripts for the benchmark on one route: started once, so that it can live where the file
system is (inside `directfuse run`, say). Standard library only; it is run as a script.

    runner.py DIRECTORY INPUT

Orders come as lines of JSON, {"before": ..., "script": ...}; each runs in a fresh directory and is
answered with {"seconds": ..., "output": ...} or {"error": ...}.
"""

import json
import os
import shutil
import subprocess
import sys
import time

SECONDS = 120


def run(script: str, directory: str, given: str) -> str:
    """What it printed."""
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
        words = (done.stderr.strip() or done.stdout.strip())[-300:]
        raise RuntimeError(words or f"status {done.returncode}")
    return done.stdout


def once(order: dict[str, str], directory: str, given: str) -> dict[str, object]:
    """Seconds of the script, without what comes before and after it, and what it printed."""
    os.mkdir(directory)
    try:
        if order["before"]:
            run(order["before"], directory, given)
        start = time.perf_counter()
        output = run(order["script"], directory, given)
        return {"seconds": time.perf_counter() - start, "output": output}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main(directory: str, given: str) -> None:
    print(json.dumps({"ready": True}), flush=True)
    for number, line in enumerate(sys.stdin):
        try:
            answer = once(json.loads(line), os.path.join(directory, str(number)), given)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
