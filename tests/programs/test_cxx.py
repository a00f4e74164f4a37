"""C++ programs: what their libraries have constructed is there when they begin."""

import errno
import shutil
import subprocess

import pytest

import directfuse

LIBRARY = """
#include <string>
extern const std::string WORD;
const std::string WORD = "constructed";
std::string variable;
"""
PROGRAM = """
#include <string>
extern const std::string WORD;
extern "C" int fuse_version(void);
int main() { return fuse_version() > 0 && WORD == "constructed" ? 7 : 8; }
"""
ASSIGNS = """
#include <string>
extern std::string variable;
extern "C" int fuse_version(void);
int main() { variable = std::string(100, 'x'); return fuse_version() > 0 ? 7 : 8; }
"""


@pytest.fixture
def program_of(tmp_path):
    """Compiles a program that is linked to LIBRARY, and has copies of what is in it."""

    def compile_(source):
        if shutil.which("g++") is None:
            pytest.skip("g++ is not installed (apt-get install g++)")
        (tmp_path / "word.cpp").write_text(LIBRARY)
        (tmp_path / "program.cpp").write_text(source)
        library, program = tmp_path / "libword.so", tmp_path / "program"
        shared = ["g++", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", library]
        subprocess.run([*shared, tmp_path / "word.cpp"], check=True)
        linked = ["g++", "-fPIE", "-pie", "-o", program]
        subprocess.run([*linked, tmp_path / "program.cpp", library, "-l:libfuse3.so.3"], check=True)
        relocations = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True)
        assert "COPY" in relocations.stdout, "the compiler has found another way"
        return str(program)

    return compile_


def test_a_constant_that_a_library_constructs(program_of):
    """The program has a copy of it, which the dynamic linker makes when it loads the program."""
    with pytest.raises(directfuse.MountError, match="returned 7 "):
        directfuse.mount([program_of(PROGRAM)], placement="inline")


def test_a_variable_that_points_into_itself_cannot_be_copied(program_of):
    program = program_of(ASSIGNS)
    with pytest.raises(directfuse.MountError, match=r"copy of a variable .* _Z8variable") as caught:
        directfuse.mount([program], placement="inline")
    assert caught.value.errno == errno.ENOEXEC
    with pytest.raises(directfuse.MountError, match="status 7 "):  # in a process of its own
        directfuse.mount([program])
