"""C++ programs: what their libraries have constructed is there when they begin."""

import errno
import shutil
import subprocess
import sys

import pytest
from building import fuse

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
KEEPS = """
#include <string>
#include <cstdio>
inline const char *&kept() { static const char *text = ""; return text; } // one for the process
struct Last { ~Last() { if (*kept()) std::puts(kept()); std::fflush(stdout); } } last;
void keep(const char *text) { kept() = text; }
"""
GIVES = """
#include <string>
void keep(const char *text);
extern "C" int fuse_version(void);
int main() { keep("a literal of the program"); return fuse_version() > 0 ? 7 : 8; }
"""


@pytest.fixture
def program_of(tmp_path):
    """Compiles a program that is linked to a library, and a copy of whose variables it has."""

    def compile_(source, library_source=LIBRARY, shares=True):
        if shutil.which("g++") is None:
            pytest.skip("g++ is not installed (apt-get install g++)")
        (tmp_path / "word.cpp").write_text(library_source)
        (tmp_path / "program.cpp").write_text(source)
        library, program = tmp_path / "libword.so", tmp_path / "program"
        shared = ["g++", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", library]
        subprocess.run([*shared, tmp_path / "word.cpp"], check=True)
        linked = ["g++", "-fPIE", "-pie", "-o", program]
        subprocess.run([*linked, tmp_path / "program.cpp", library, *fuse()], check=True)
        relocations = subprocess.run(["readelf", "-rW", program], capture_output=True, text=True)
        assert ("COPY" in relocations.stdout) == shares, "the compiler has found another way"
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


def test_what_a_library_keeps_of_the_program_is_there_at_the_hosts_exit(program_of):
    """A library with a symbol that is unique in the process is never unloaded (decision 054)."""
    program = program_of(GIVES, KEEPS, shares=False)
    host = f"""
import directfuse
try:
    directfuse.mount([{program!r}], placement="inline")
except directfuse.MountError as error:
    assert "returned 7 " in str(error), error
"""
    done = subprocess.run([sys.executable, "-c", host], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "a literal of the program\n"
