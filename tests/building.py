"""What tests build in C when they need it."""

import os
import shutil
import subprocess

import pytest

from directfuse import _paths


def fuse(package="fuse3", *, linked=True):
    """The compiler's options for a program of libfuse: for build(). Skips without the headers."""
    query = ["pkg-config", "--cflags", *(["--libs"] if linked else []), package]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"{package}'s headers are not installed (apt install lib{package}-dev)")
    return done.stdout.split()


def plugin():
    """The same for a shared object that is linked to our library: to the one of the headers."""
    file = _paths.pkgconfig_dir() / "directfuse-plugin.pc"
    return ["-shared", "-fPIC", *fuse(os.fspath(file))]


def build(source, target, *options):
    """The path of what is made, as text; options stand behind the source. Skips without gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    command = ["gcc", "-O1", source, "-o", target, *options]
    subprocess.run(command, check=True)
    return os.fspath(target)
