"""What lies on disk, by a real link into the mount and a link there out of it again. The argument
is a directory on disk, which is empty."""

import os
import subprocess
import sys

from shown import show

disk, here = sys.argv[1], os.getcwd()
os.symlink(here, f"{disk}/in")
os.symlink(f"{disk}/other", "out")
os.mkdir(f"{disk}/other")
os.mkdir("directory")
os.chdir("/")
way = f"{disk}/in/out"

show("mkdir", os.mkdir, f"{way}/new")
show("again", os.mkdir, f"{way}/new")
with open(f"{way}/file", "w") as file:
    file.write("text")
show("made", lambda: sorted(os.listdir(f"{disk}/other")))
show("listed", lambda: sorted(os.listdir(way)))
show("size", lambda: os.stat(f"{way}/file").st_size)
show("access", os.access, f"{way}/file", os.R_OK)
show("truncate", os.truncate, f"{way}/file", 2)
show("read", lambda: open(f"{way}/file").read())
show("rename", os.rename, f"{way}/file", f"{way}/new/moved")
show("link", os.link, f"{way}/new/moved", f"{disk}/other/linked")
show("from there", os.rename, f"{disk}/other/linked", f"{way}/again")
show("symlink", os.symlink, "again", f"{way}/symlink")
show("target", os.readlink, f"{way}/symlink")
show("missing", os.stat, f"{way}/missing")
show("above a file", os.stat, f"{way}/again/missing")
show("unlink", os.unlink, f"{way}/symlink")
show("entered", os.chdir, f"{way}/new")
print(os.getcwd() == f"{disk}/other/new", os.listdir("."), flush=True)
with open(f"{way}/script", "w") as file:
    file.write("#!/bin/sh\necho executed")
os.chmod(f"{way}/script", 0o755)
show("executed", subprocess.check_output, [f"{way}/script"])
show("from the mount", os.rename, f"{here}/directory", f"{disk}/in/renamed")
print(sorted(os.listdir(here)), sorted(os.listdir(f"{disk}/other")))
os.chdir(here)
subprocess.check_call(["rm", "-r", f"{disk}/in", f"{disk}/other"])
