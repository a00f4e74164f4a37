"""Prints how many bytes the memory of the run has that a core file would take along."""

import re
from pathlib import Path

taken = 0
for mapping in re.split(r"\n(?=[0-9a-f]+-)", Path("/proc/self/smaps").read_text()):
    size = int(re.search(r"^Size: *(\d+) kB", mapping, re.M)[1])
    flags = re.search(r"^VmFlags:(.*)", mapping, re.M)[1].split()
    if "memfd:directfuse" in mapping and "sh" in flags and "dd" not in flags:
        taken += size << 10
print(taken)
