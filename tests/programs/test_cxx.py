"""C++ programs: what their libraries have constructed is there when they begin."""

import shutil
import subprocess

import pytest

import directfuse

LIBRARY = (
    '#include <string>\nextern const std::string WORD;\nconst std::string WORD = "constructed";'
)
PROGRAM = """
#include <string>
extern const std::string WORD;
extern "C" int fuse_version(void);
int main() { return fuse_version() > 0 && WORD == "constructed" ? 7 : 8; }
"""


def test_a_constant_that_a_library_constructs(tmp_path):
    """The program has a copy of it, which the dynamic linker makes when it loads the program."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed (apt-get install g++)")
    (tmp_path / "word.cpp").write_text(LIBRARY)
    (tmp_path / "program.cpp").write_text(PROGRAM)
    library, program = tmp_path / "libword.so", tmp_path / "program"
    shared = ["g++", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", library]
    subprocess.run([*shared, tmp_path / "word.cpp"], check=True)
    linked = ["g++", "-fPIE", "-pie", "-o", program]
    subprocess.run([*linked, tmp_path / "program.cpp", library, "-l:libfuse3.so.3"], check=True)
    relocations = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True)
    assert "COPY" in relocations.stdout, "the compiler has found another way"
    with pytest.raises(directfuse.MountError, match="returned 7 "):
        directfuse.mount([str(program)], placement="inline")
