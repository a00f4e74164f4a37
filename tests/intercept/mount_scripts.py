"""Programs that live on files: each runs in a directory of a mount and in a plain one.

A script leaves what it likes in its working directory and prints nothing that depends on where it
is, when it runs, or on inode numbers.
"""

_GIT = (
    "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000' "
    "GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; "
    "git init -q -b main r; cd r; for i in 1 2 3; do seq $i 99 >f$i; git add .; git commit -qm $i; done; "
)

# What is known already is answered by another way than what is asked for the first time.
_STATS = r"""
import ctypes, os, stat, subprocess
os.makedirs("a/b"); open("a/b/f", "w").write("xyz"); os.symlink("b", "a/s"); os.symlink("f", "a/b/l")
here, d, libc = os.getcwd(), os.open("a", os.O_RDONLY), ctypes.CDLL(None, use_errno=True)
names = ["b/f", "b//f", "./b/f", "b/./f", "b/../b/f", "b/f/", "b", "b/", "b/.", "b/..", "s", "s/", "s/f",
         "b/l", "s/l", "none", "none/x", "b/f/x", "b/.f", "b/..f", "b/f.", "", ".", "..", "../a/b/f",
         "n" * 255, "n" * 256, "b/" * 900 + "f", "b/../" * 500 + "b/f"]
def look(name, **how):
    try:
        st = os.stat(name, **how)
    except OSError as error:
        return error.errno
    return oct(st.st_mode), st.st_uid, (st.st_nlink, st.st_size) if stat.S_ISREG(st.st_mode) else ""
def all():
    for name in names * 3:
        for follow in (True, False):
            how = {"follow_symlinks": follow}
            print(name[:20], look("a/" + name, **how), look(f"{here}/a/{name}", **how),
                  look(f"/{here}//a/{name}", **how), look(name, dir_fd=d, **how))
all()
os.chdir("a"); os.chdir(here)
for change in ("chmod 600 a/b/f", "ln a/b/f a/none", "mv a/b a/c; ln -sn c a/b", "rm a/b; mkdir a/b", "rm a/c/f"):
    subprocess.run(change, shell=True, check=True); all()
open("a/b/f", "w"); all()
room = ctypes.create_string_buffer(256)
for _ in range(2):
    for path, to in ((b"a/b/f", 16), (16, room), (b"a/b/f", -1), (None, room)):
        path = ctypes.c_void_p(path) if isinstance(path, int) else path
        to = ctypes.c_void_p(to) if isinstance(to, int) else to
        print(libc.stat(path, to), ctypes.get_errno())
"""

# A mapped file's size is set by its name, which no descriptor of it knows of.
_RESIZED = r"""
import mmap, os, zlib
def by_other(call, *args):
    if os.fork() == 0:
        call(*args); os._exit(0)
    os.wait()
def seen(fd):
    data = os.pread(fd, 1 << 26, 0)
    return os.fstat(fd).st_size, len(data), zlib.crc32(data), len(open("l", "rb").read())
for size in (100_000, (17 << 20) + 5):
    for kept in (False, True):
        fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.write(fd, b"0123456789" * (size // 10))
        if not os.path.islink("l"): os.symlink("f", "l")
        memory = mmap.mmap(fd, 0); memory[:3] = b"abc"; memory.flush()
        if not kept: memory.close()
        for to, call in ((9000, os.truncate), (70_000, os.truncate), (10, by_other), (size, by_other), (50, os.truncate)):
            (call("l", to) if call is os.truncate else by_other(os.truncate, "f", to))
            print(size, kept, to, seen(fd))
        os.close(fd)
"""

#: Name -> a script for /bin/sh.
MOUNT_SCRIPTS = {
    "redirections": (
        "echo one >f; echo two >>f; cat <f; wc -c f; exec 3<>f; read a <&3; echo $a; echo TWO >&3; "
        "exec 3>&-; cat f; (echo x; echo y) >g; tail -1 g; >f; wc -c <f; set -C; echo z >g; echo $?"
    ),
    "directories": (
        "mkdir -p a/b/c; cd a/b/c; pwd -P | sed 's,.*/a,a,'; cd ..; ls; rmdir c; ls; cd ../..; mv a z; "
        "ls -R; cd z/b; mv ../../z ../../y; pwd -P | sed 's,.*/y,y,'; cd ../..; rm -r y; ls -A"
    ),
    "working directory that moves": (
        "mkdir d; mkfifo p q; exec 3<>p 4<>q; (cd d; echo in >&4; read x <&3; echo x >f; ls; ls ../e) & "
        "read x <&4; mv d e; echo go >&3; wait; ls e"
    ),
    "stat of what is known": f"python3 - <<'E'{_STATS}E\n",
    "links": (
        "echo x >f; ln f g; ln -s f s; ln -s /nonexistent d; readlink s d; cat s; stat -c %h f; rm f; "
        "cat g; cat s; echo $?; mkdir t; ln -s ../g t/u; cat t/u; cp -P t/u t/v; readlink t/v; [ -L d ]; "
        "echo $?; ln -sf t tt; ls tt/; realpath --relative-to=. tt/u"
    ),
    "attributes": (
        "umask 027; touch f; mkdir d; stat -c '%a %F' f d; chmod 4711 f; stat -c %a f; touch -d @77 f; "
        "stat -c %Y f; touch -r f d; stat -c %Y d; truncate -s 5000 f; stat -c %s f; chmod -R a+rX d; "
        "stat -c %a d; test -x f; echo $?; touch -d @88 f; cp -p f g; stat -c '%a %Y %s' g; cp -a d e; stat -c %Y e"
    ),
    "listing": (
        "seq 1 300 | while read i; do : >n$i; done; ls | wc -l; ls -U | sort | md5sum; find . -name 'n1*' | wc -l; "
        "rm n*; ls -A | wc -l; mkdir -p x/y; touch x/y/z; find . | sort; du -a | cut -f2 | sort; rm -r x"
    ),
    "dd and sparse files": (
        "dd if=/dev/zero of=f bs=4k count=300 status=none; dd if=f of=g bs=1M status=none; cmp f g; "
        "echo end | dd of=f bs=1 seek=9000000 conv=notrunc status=none; stat -c %s f; tail -c 4 f; "
        "head -c 100 /dev/zero | dd of=g oflag=append conv=notrunc status=none; stat -c %s g; "
        "fallocate -l 20000 h; stat -c %s h; sync h; split -b 500k g; cat x* | cmp - g; echo $?"
    ),
    "text": (
        "seq 1 2000 >f; grep -c 7 f; grep -rl 777 . ; sed -i s/1000/thousand/ f; grep -n thousand f; "
        "sort -r f -o f; head -1 f; awk '{ s += $1 } END { print s }' f; join f f | wc -l; tac f | head -1; "
        "diff f f && echo same; paste f f | cut -f2 | uniq | wc -l; shuf -n 3 f | wc -l; comm -12 f f 2>/dev/null | wc -l"
    ),
    "tar of a tree": (
        "mkdir -p t/a/b; seq 1 5000 >t/a/f; ln t/a/f t/a/b/g; ln -s ../f t/a/b/s; chmod 700 t/a/b; "
        "tar czf t.gz t; tar cJf t.xz t; rm -r t; tar xf t.gz; stat -c '%a %h' t/a/b t/a/f | head -2; "
        "cat t/a/b/s | md5sum; tar df t.xz; echo $?; tar tf t.gz | sort"
    ),
    "compressors": (
        "seq 1 9000 >f; for c in gzip bzip2 xz zstd; do command -v $c >/dev/null || continue; $c -qk f; "
        "done; for z in f.*; do case $z in *.gz) gzip -dc $z;; *.bz2) bzip2 -dc $z;; *.xz) xz -dc $z;; "
        "*.zst) zstd -qdc $z;; esac | cmp - f && echo ok; done | sort -u"
    ),
    "git branches": (
        _GIT + "git checkout -qb b; echo b >b; git add b; git commit -qm b; git checkout -q main; "
        "git merge -q --no-edit b; git rebase -q b; git log --format=%s; git status --short; "
        "git stash -q 2>/dev/null; git worktree add -q ../w b 2>&1; ls ../w; git tag x; git describe --tags"
    ),
    "git clone": (
        _GIT
        + "git gc -q; git fsck 2>&1; git clone -q . ../c; cd ../c; git log --format=%H; echo x >>f1; "
        "git commit -qam more; git push -q origin HEAD:other; git -C ../r branch; git diff --stat HEAD~1; "
        "git grep -c 55; git archive HEAD | tar t"
    ),
    "sqlite rollback": (
        "sqlite3 x 'create table t(a integer primary key, b); with recursive c(i) as (select 1 union all "
        "select i + 1 from c where i < 2000) insert into t select i, hex(i) from c; "
        "select sum(a), max(length(b)) from t; vacuum; pragma integrity_check;'; ls"
    ),
    "sqlite with writers": (
        "sqlite3 x 'pragma journal_mode=wal; create table t(a);'; for i in 1 2 3; do (for j in 1 2 3 4 5; do "
        "sqlite3 -cmd '.timeout 20000' x \"insert into t values ($i$j)\"; done) & done; wait; "
        "sqlite3 x 'select count(*), sum(a) from t; pragma integrity_check'"
    ),
    "locks": (
        "touch l; (flock 9; flock -n l true; echo $?; flock -u 9; flock -n l true; echo $?) 9>l; "
        "flock l sh -c 'echo held; flock -n l echo no; echo $?'"
    ),
    "fifo": "mkfifo p; cat p & echo through >p; wait; test -p p; echo $?; rm p; ls -A",
    "fifo copied": "mkfifo p; echo through >p & cp --copy-contents p f; cat f; wait; stat -Lc %F:%h:%a - <>p",
    "unix socket": (
        'python3 -S -c \'\nimport socket, os\ns = socket.socket(socket.AF_UNIX); s.bind("s"); s.listen()\n'
        'c = socket.socket(socket.AF_UNIX); c.connect("s"); d, _ = s.accept(); c.send(b"hi")\n'
        'print(d.recv(9), s.getsockname(), c.getpeername(), os.listdir("."))\nos.unlink("s")\n'
        'try: socket.socket(socket.AF_UNIX).connect("s")\nexcept OSError as e: print(e)\''
    ),
    "unix datagrams": (
        "python3 -S -c '\nimport os, socket\na, b = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in (0, 1))\n"
        'a.bind("a"); b.bind("b")\nb.sendmsg([b"one"], [], 0, "a"); print(a.recvfrom(9))\n'
        'b.sendto(b"two", "a"); print(a.recvmsg(9)); a.sendto(b"back", "b"); print(b.recv(9))\n'
        'open("f", "w"); os.unlink("b")\nfor to in "none", "f", "/dev/null", "b":\n'
        ' try: a.sendmsg([b"x"], [], 0, to)\n except OSError as e: print(e)\n\''
    ),
    "unix address of another socket": (
        "touch f; python3 -S -c '\nimport ctypes, os, socket\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        'fds = socket.socket().detach(), os.open("f", 0), 99, socket.socket(socket.AF_UNIX).detach()\n'
        'for name in (b"f", b"s"):\n a = (1).to_bytes(2, "little") + name + b"\\0"\n for call in (libc.bind, libc.connect):\n'
        "  for fd in fds: print(call(fd, a, len(a)), os.strerror(ctypes.get_errno()))'; ls"
    ),
    "descriptor over a socket": (
        "echo passed >f; python3 -S -c '\nimport socket, os\na, b = socket.socketpair()\n"
        'if os.fork() == 0:\n fd = os.open("f", os.O_RDONLY); os.read(fd, 2)\n'
        ' socket.send_fds(a, [b"x"], [fd]); os._exit(0)\nos.wait()\n'
        "_, fds, _, _ = socket.recv_fds(b, 1, 1); print(os.read(fds[0], 99), os.fstat(fds[0]).st_size)'"
    ),
    "inherited position": (
        "seq 1 9 >f; exec 3<f; head -c 2 <&3; sh -c 'head -c 2 <&3'; python3 -S -c 'import os; "
        "print(os.read(3, 4), os.lseek(3, 0, 1))'; cat <&3; (echo a; echo b) >>f; tail -3 f"
    ),
    "mapped and resized by name": f"python3 - <<'E'{_RESIZED}E\n",
    "mmap": (
        'python3 -S -c \'\nimport mmap, os\nwith open("f", "wb") as f: f.write(b"0123456789" * 1000)\n'
        'with open("f", "r+b") as f:\n m = mmap.mmap(f.fileno(), 0); m[3:6] = b"abc"; print(m[:8])\n'
        ' if os.fork() == 0: print(m[2:7], flush=True); m[8:9] = b"X"; os._exit(0)\n os.wait()\n'
        ' print(m[:10]); f.seek(0); print(f.read(10)); m.flush(); f.write(b"w"); f.flush(); print(m[10:12])\n'
        ' m.close()\nprint(open("f", "rb").read(12), os.path.getsize("f"))\n'
        'm = mmap.mmap(os.open("f", os.O_RDONLY), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE)\n'
        "print(m[:12], len(m))'"
    ),
    "python files": (
        'python3 -c \'\nimport os, shutil, pathlib, tempfile, glob, zipfile\nos.makedirs("a/b")\n'
        'pathlib.Path("a/b/f").write_text("x" * 9999)\nshutil.copytree("a", "c"); shutil.move("c", "d")\n'
        'print(sorted(glob.glob("**", recursive=True)))\nwith zipfile.ZipFile("z", "w") as z: z.write("a/b/f")\n'
        'print(zipfile.ZipFile("z").namelist(), zipfile.ZipFile("z").testzip())\n'
        't = tempfile.NamedTemporaryFile(dir="."); t.write(b"x"); print(os.path.exists(t.name)); t.close()\n'
        'print([e.name for e in os.scandir("d")], os.path.samefile("a", "./a"), os.stat("a/b/f").st_size)\n'
        'shutil.rmtree("a"); print(sorted(os.listdir())); fd = os.open("d", os.O_RDONLY)\n'
        'print(os.stat("b/f", dir_fd=fd).st_size, os.listdir(fd)); os.rename("b", "q", src_dir_fd=fd, dst_dir_fd=fd)\n'
        'print(os.listdir("d")); print([r for r, _, _ in os.walk(".")])\''
    ),
    "python copies": (
        'python3 -S -c \'\nimport os, errno\nopen("f", "wb").write(os.urandom(300000))\n'
        'a = os.open("f", os.O_RDONLY); b = os.open("g", os.O_RDWR | os.O_CREAT)\n'
        "print(os.copy_file_range(a, b, 100000, 0, 0), os.sendfile(b, a, 100000, 100000))\n"
        'r, w = os.pipe(); print(os.splice(a, w, 1000, offset_src=5) if hasattr(os, "splice") else 1000)\n'
        'print(os.fstat(b).st_size, open("f", "rb").read(100000) == open("g", "rb").read(100000))\n'
        "os.posix_fallocate(b, 0, 500000); os.ftruncate(b, 7); print(os.fstat(b).st_size)\n"
        'print(os.preadv(a, [bytearray(5)], 299998), os.pwritev(b, [b"ab", b"cd"], 1), os.lseek(b, -2, 2))\n'
        'try: os.open("f/x", 0)\nexcept OSError as e: print(e.strerror)\n'
        "try: os.ttyname(a)\nexcept OSError as e: print(e.strerror)'"
    ),
    "python nameless files": (
        "python3 -S -c 'import os, ctypes, tempfile\nhere = os.getcwd(); libc = ctypes.CDLL(None)\n"
        "def nameless(flags=0): return os.open(here, os.O_TMPFILE | os.O_RDWR | flags, 0o640)\n"
        'def link(fd, name): return libc.linkat(fd, b"", -100, name, 0x1000)\n'
        'a = nameless(); os.write(a, b"abc"); shown = os.readlink(f"/proc/self/fd/{a}")\n'
        'print(os.fstat(a).st_nlink, os.listdir(), shown.startswith(here + "/#"), shown.endswith(" (deleted)"))\n'
        'os.link(f"/proc/self/fd/{a}", "n", src_dir_fd=0); print(os.listdir(), open("n").read(), os.fstat(a).st_nlink)\n'
        'os.unlink("n"); print(link(a, b"n"), link(nameless(), b"m"), link(nameless(os.O_EXCL), b"o"), os.listdir())\n'
        't = tempfile.TemporaryFile(dir=here); t.write(b"x" * 99999); print(t.seek(0), len(t.read()), os.listdir())\n'
        'if os.fork() == 0: os.pwrite(a, b"child", 0); os._exit(0)\n'
        "os.wait(); print(os.pread(a, 9, 0), oct(os.fstat(a).st_mode))'"
    ),
    "python shelve and dbm": (
        'python3 -c \'\nimport shelve, sqlite3, pickle\nwith shelve.open("s") as s: s["k"] = list(range(99))\n'
        'with shelve.open("s") as s: print(sum(s["k"]))\nc = sqlite3.connect("q"); '
        'c.execute("create table t(a)"); c.executemany("insert into t values (?)", [(i,) for i in range(500)]); '
        'c.commit(); print(c.execute("select sum(a) from t").fetchone())\''
    ),
    "multiprocessing with a file": (
        'printf \'import multiprocessing as m, os\\ndef f(i):\\n with open("log", "a") as f: f.write("%%d\\\\n" %% i)\\n'
        " return os.getcwd() == CWD\\nCWD = os.getcwd()\\n"
        'if __name__ == "__main__":\\n for how in ("fork", "spawn"):\\n'
        "  with m.get_context(how).Pool(2) as p: print(all(p.map(f, range(20))))\\n' >x.py; python3 x.py; sort -n log | uniq -c | tail -2"
    ),
    "programs": (
        "cp /bin/echo e; ./e copied; printf '#!/bin/sh\\necho script $#\\n' >s; chmod +x s; ./s a b; "
        "PATH=$PWD:$PATH s; printf '#!./s\\n' >t; chmod +x t; ./t; chmod -x e; ./e; echo $?; mkdir d; cp s d; "
        "cd d; exec ../d/s x"
    ),
    "compile and link": (
        "printf '#include \"h.h\"\\nint f(void) { return N; }\\n' >l.c; echo '#define N 7' >h.h; "
        'printf \'#include <stdio.h>\\n#include <dlfcn.h>\\nint f(void); int main(void) { void *h = dlopen("./l.so", 2);\\n'
        'int (*g)(void) = dlsym(h, "f"); printf("%%d %%d\\\\n", f(), g()); return 0; }\\n\' >m.c; '
        "gcc -shared -fPIC l.c -o l.so; gcc m.c ./l.so -o m -ldl; ./m; ar rcs l.a l.so; nm l.so | grep -c ' T f'; "
        "printf 'm: m.c l.so\\n\\tgcc m.c ./l.so -o m\\n' >Makefile; make -s; touch l.so; touch -d @9 m; make -n"
    ),
    "perl": (
        'perl -e \'open F, ">", "f" or die; print F "$_\\n" for 1..99; close F; open F, "f"; my @l = <F>; '
        'print scalar(@l), " ", -s "f", "\\n"; rename "f", "g"; opendir D, "."; print sort grep { !/^\\./ } readdir D; '
        'utime 5, 6, "g"; print " ", (stat "g")[9], "\\n"; open F, "+<", "g"; seek F, 3, 0; truncate F, 10; print -s F; '
        'unlink "g"; print -e "g" ? 1 : 0, "\\n"\'; seq 1 5 >f; perl -pi -e \'s/3/three/\' f; cat f'
    ),
    "editors": (
        "seq 1 30 >f; printf '2d\\n$a\\nlast\\n.\\nw\\nq\\n' | ed -s f; tail -1 f; wc -l <f; "
        "if command -v vim >/dev/null; then vim -es -u NONE -i NONE -c '%s/29/vim/' -c wq f; grep -n vim f; "
        "else echo 27:vim; fi; ls -A"
    ),
    "archives": (
        "mkdir d; seq 1 99 >d/f; find d | cpio -o 2>/dev/null >c; (cd d; rm f); cpio -i -u 2>/dev/null <c; wc -l <d/f; "
        "busybox cat d/f | tail -1; busybox tar cf b.tar d; tar tf b.tar | sort"
    ),
    "xattr": (
        'python3 -S -c \'\nimport os\nopen("f", "w").close()\nfor p in ("f", os.open("f", os.O_RDWR)):\n'
        ' try: os.setxattr(p, "user.a", b"1"); print(os.getxattr(p, "user.a"), os.listxattr(p)); os.removexattr(p, "user.a")\n'
        ' except OSError as e: print(e.strerror)\ntry: os.getxattr("f", "user.none")\nexcept OSError as e: print(e.strerror)\''
    ),
    "access control lists": (
        "umask 027; mkdir d; setfacl -m u:1000:rwx,g:1001:rx d; setfacl -d -m u:1000:rwX,o::- d; touch d/f; mkdir d/sub; "
        "getfacl d d/f d/sub; cp -a d e; getfacl e e/f e/sub; stat -c %A e/*; chmod 640 d/f; getfacl d/f; "
        "setfacl -x u:1000 d/f; getfacl d/f; setfacl -b d/f; stat -c %A d/f; setfacl -k d; getfacl d; "
        "tar --acls -cf t e; mkdir x; tar --acls -xf t -C x; getfacl x/e x/e/f x/e/sub"
    ),
    "xattr by another name of a descriptor": (
        'python3 -S -c \'\nimport os\nopen("f", "w").close()\nfor fd in os.open("f", os.O_PATH), os.open("f", os.O_RDWR):\n'
        ' for p in f"/proc/self/fd/{fd}", f"/dev/fd/{fd}":\n'
        '  try: os.setxattr(p, "user.a", b"1"); print(os.getxattr(p, "user.a"), os.listxattr(p)); os.removexattr(p, "user.a")\n'
        "  except OSError as e: print(e.strerror)'"
    ),
    "proc": (
        "echo x >f; exec 4<f; readlink /proc/self/fd/0 | wc -l; cat /dev/fd/4; cat </proc/self/fd/4; cat /dev/stdin <f; "
        "readlink /proc/$$/fd/4 | sed 's,.*/,,'; readlink /proc/self/cwd | sed 's,.*/\\(plain\\|mount\\),cwd,'"
    ),
    "proc of others": (
        "echo text >f; mkdir d; echo deep >d/g; (cd d; exec sleep 60 3<../f) & p=$!; "
        'until [ sleep = "$(cat /proc/$p/comm)" ]; do :; done; cat /proc/$p/fd/3 /proc/$p/cwd/g; ls /proc/$p/cwd/; '
        "test -L /proc/$p/fd/3 && test /proc/$p/fd/3 -ef f && test /proc/$p/cwd -ef d; echo $?; cd /proc/$p/cwd && cat g; "
        "echo more >>/proc/$p/fd/3; kill $p; wait; cat ../f"
    ),
    "file of many descriptors": (
        'python3 -S -c \'\nimport os\nopen("f", "w").write("x" * 100)\nfds = [os.open("f", 0) for _ in range(200)]\n'
        "print(len(set(fds)), fds == sorted(fds)); d = os.dup2(fds[0], 900); os.read(900, 7); print(os.lseek(fds[0], 0, 1))\n"
        "os.closerange(fds[0], fds[-1] + 1)\ntry: os.read(fds[5], 1)\nexcept OSError as e: print(e.strerror)\n"
        "print(os.read(900, 3)); os.set_inheritable(900, True); print(os.get_inheritable(900))'"
    ),
    "more files than are told at an exec, far apart": (
        'ulimit -n 9000 && python3 -S -c \'\nimport os, sys\nopen("f", "w").write("x" * 100)\n'
        'for number in range(1000): os.set_inheritable(os.open("f", 0), True)\nfor number in 4097, 4500, 8000: os.dup2(9, number)\n'
        'os.lseek(9, 30, 0)\nos.execv(sys.executable, ["python3", "-S", "-c", "import os, sys\\nfor fd in 9, 999, 4097, 4500, 8000: "\n'
        ' "print(fd, len(os.read(fd, 9)), os.lseek(fd, 0, 1), os.fstat(fd).st_size)"])\' && cat f'
    ),
    "python sees errors": (
        'python3 -S -c \'\nimport os, ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nopen("f", "w").write("abc")\n'
        'fd = os.open("f", os.O_RDWR)\nfor call in (lambda: libc.read(fd, ctypes.c_void_p(8), 3), lambda: libc.write(fd, ctypes.c_void_p(8), 3),\n'
        ' lambda: libc.open(ctypes.c_void_p(8), 0), lambda: libc.stat(b"f", ctypes.c_void_p(8)), lambda: libc.mkdir(ctypes.c_void_p(8), 0),\n'
        " lambda: libc.read(fd, ctypes.c_void_p(8), 0), lambda: libc.getdents64(fd, ctypes.c_void_p(8), 99)):\n"
        " ctypes.set_errno(0); print(call(), os.strerror(ctypes.get_errno()))'"
    ),
    "calls with arguments that are refused": (
        "mkdir d; echo text >f; python3 -S -c '\nimport ctypes, mmap, os, signal\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        'r, w, d, a = (os.open(n, f) for n, f in (("f", 0), ("f", 1), ("d", 0), ("f", os.O_WRONLY | os.O_APPEND)))\n'
        'ends, at = os.pipe(), ctypes.c_int64(99); os.write(ends[1], b"piped"); page = mmap.mmap(-1, 4096)\n'
        "start = ctypes.addressof(ctypes.c_char.from_buffer(page)); libc.mprotect(ctypes.c_void_p(start), 4096, 1)\n"
        "def call(number, *words):\n ctypes.set_errno(0)\n print(number, libc.syscall(number, *map(ctypes.c_long, words)), ctypes.get_errno())\n"
        "for out, source in (-1, r), (r, r), (w, w), (a, r), (w, -1), (w, ends[0]), (ends[1], r):\n"
        " call(40, out, source, 0, 0); call(40, out, source, ctypes.addressof(at), 9); call(40, out, source, 0, 9); at.value = -1\n"
        "call(40, w, r, start, 9); call(40, w, r, 8, 9); call(275, ends[0], 0, a, 0, 9, 0); call(275, ends[0], 0, r, 0, 9, 0)\n"
        "for words in (-1, 1, 1), (0, -1, 2), (0, 1, 8), (1 << 62, 1 << 62, 0), (0, 0, 7): call(277, r, *words)\n"
        'for fd in r, w, d: call(187, fd, 0, 9)\nfor kind in 0, 1, 2: call(9, 0, 4096, 3, kind, w, 0)\nprint(open("f").read())\''
    ),
    "paths that are refused after flags": (
        "python3 -S -c '\nimport ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        'for path in b"./" * 2048, os.fsencode(os.getcwd()) + b"/." * 2048, 8:\n'
        " path, here = path if path == 8 else ctypes.c_char_p(path), -100\n"
        " for number, *words in ((257, 0o20200000, 0), (257, 0o100, 0), (263, 8), (260, -1, -1, 8), (439, 0, 8), (452, 0, 8),\n"
        "  (280, 0, 8), (332, 8, 0, 0), (262, 0, 8), (258, 0), (259, 0o40000, 0), (76, -1), (188, 0, 0, 0, 8)):\n"
        "  place = (path,) if number in (76, 188) else (here, path)\n  ctypes.set_errno(0)\n"
        "  words = [ctypes.c_long(w) if isinstance(w, int) else w for w in (*place, *words)]\n"
        "  print(number, libc.syscall(number, *words), ctypes.get_errno())'"
    ),
    "file size limit": (
        "(ulimit -f 2; head -c 4096 /dev/zero >f) 2>/dev/null; echo $?; wc -c <f; "
        'python3 -S -c \'import os, resource, signal\nsignal.signal(signal.SIGXFSZ, lambda *_: print("signal"))\n'
        'fd = os.open("f", os.O_RDWR); resource.setrlimit(resource.RLIMIT_FSIZE, (1024, resource.RLIM_INFINITY))\n'
        'for call in (lambda: os.pwrite(fd, b"x", 1024), lambda: os.truncate("f", 1025), lambda: os.ftruncate(fd, 1025),\n'
        ' lambda: os.posix_fallocate(fd, 0, 1025), lambda: os.pwrite(fd, b"abc", 1022), lambda: os.ftruncate(fd, 1000)):\n'
        " try: print(call(), os.fstat(fd).st_size)\n except OSError as e: print(e.strerror)'"
    ),
    "address space limit": (
        "python3 -S -c 'import mmap, os, resource\nfrom resource import RLIMIT_AS, RLIM_INFINITY\nM = 1 << 20\n"
        "print(resource.getrlimit(RLIMIT_AS), resource.prlimit(0, RLIMIT_AS, (300 * M, 500 * M)))\n"
        "print(resource.getrlimit(RLIMIT_AS), resource.prlimit(os.getpid(), RLIMIT_AS))\nheld = []\n"
        "def take(count):\n try: held.append(mmap.mmap(-1, count * M)); print(count)\n except OSError as e: print(e.strerror)\n"
        "take(200); take(150); print(resource.prlimit(0, RLIMIT_AS, (500 * M, 500 * M))); take(150)\n"
        "try: resource.setrlimit(RLIMIT_AS, (RLIM_INFINITY, 500 * M))\nexcept ValueError as e: print(e)\nheld.clear()\n"
        'print(os.system("ulimit -v; ulimit -Hv; echo child >f; cat f | cat"))\n'
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor words in (97, 9, 8), (97, 9, 0), (160, 9, 0), (302, 0, 9, 8, 0), (302, 0, 9, 0, 8):\n"
        " print(libc.syscall(*map(ctypes.c_long, words)), ctypes.get_errno()); ctypes.set_errno(0)'"
    ),
    "all memory is locked": (
        "python3 -S -c 'import ctypes, os, resource, sys\nlibc = ctypes.CDLL(None, use_errno=True)\nimport mmap\n"
        "def call(*words):\n ctypes.set_errno(0)\n return libc.syscall(*map(ctypes.c_long, words)), ctypes.get_errno()\n"
        'def locked():\n line, = (line for line in open("/proc/self/status") if line.startswith("VmLck"))\n'
        " return round(int(line.split()[1]), -5)\n"
        "held = mmap.mmap(-1, 100 << 20)\nfor flags in 1, 5, 4, 0, 8, 3, 7, 2: print(flags, call(151, flags), locked())\n"
        "more = mmap.mmap(-1, 100 << 20)\nprint(locked(), call(152), locked())\nsys.stdout.flush()\n"
        "for limit in 0, 64 << 10:\n if os.fork() == 0:\n"
        "  resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit)); os.setuid(65534)\n"
        "  print(limit, call(151, 1), call(151, 3), call(151, 2), flush=True); os._exit(0)\n os.wait()'"
    ),
    "our own descriptors are none of the program's": (
        "python3 -S -c 'import os\ndef there(fd):\n try: os.fstat(fd)\n except OSError: return False\n return True\n"
        'print([fd for fd in range(3, 1024) if there(fd)])\nlists = "self/fd", "self/fdinfo", "thread-self/fd", str(os.getpid()) + "/fd/."\n'
        'def listed():\n for at in lists: print(at[-3:], sorted(map(int, os.listdir("/proc/" + at))))\n'
        "listed()\nmore = [os.dup(0) for _ in range(900)]; listed()\n"
        "for fd in range(3, 1200):\n try: os.close(fd)\n except OSError: pass\nlisted()\n"
        'print(os.system("echo child >f; cat f"))\''
    ),
    "no descriptor left": (
        'python3 -S -c \'\nimport os, resource\nopen("f", "w").write("x" * 100)\n'
        'resource.setrlimit(resource.RLIMIT_NOFILE, (30, 100))\nfds = []\ntry:\n while True: fds.append(os.open("f", 0))\n'
        "except OSError as e: print(len(fds) > 9, e.strerror)\nif os.fork() == 0:\n"
        ' print(os.stat("f").st_size, os.read(fds[0], 3), flush=True); os._exit(0)\nos.wait(); os.close(fds.pop())\n'
        'print(len(os.listdir(".")), os.read(fds[0], 2)); os.set_inheritable(fds[0], True); os.close(fds.pop())\n'
        'os.execlp("sh", "sh", "-c", f"head -c 4 <&{fds[0]}; cat f | wc -c")\''
    ),
}
