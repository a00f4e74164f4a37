"""Programs that run inside as they do without us: the same output, the same status."""

# ruff: noqa: E501

#: Name -> a script for /bin/sh. Each leaves nothing behind but files in its working directory.
SCRIPTS = {
    "true": "true",
    "status": "exit 7",
    "killed": "kill -KILL $$",
    "terminated": "kill -TERM $$",
    "crash": "ulimit -c 0; exec python3 -S -c 'import ctypes; ctypes.string_at(0)'",
    "no environment": "exec env -i /bin/sh -c '/bin/echo empty; /bin/ls -d /'",
    "script": "printf '#!/bin/sh\\necho script $0 $@\\n' >s; chmod +x s; ./s a b",
    "script with an argument": (
        "printf '#!/usr/bin/env -S python3 -S\\nimport sys; print(sys.argv)\\n' >s; chmod +x s; "
        "./s x y"
    ),
    "script of a script": (
        "printf '#!/bin/sh\\necho inner $@\\n' >a; printf '#!./a -x\\n' >b; chmod +x a b; ./b y"
    ),
    "script without a first line": "echo 'echo bare $@' >s; chmod +x s; ./s q r",
    "script's own name": (
        "printf '#!/bin/sh\\ncat /proc/$$/comm\\n' >own-name; printf '#!./own-name -x\\n' >b; chmod +x own-name b; "
        "./own-name; ./b y; LD_SHOW_AUXV=1 ./own-name | grep EXECFN; LD_SHOW_AUXV=1 ./b | grep EXECFN"
    ),
    "script loop": "printf '#!./s\\n' >s; chmod +x s; ./s; echo $?",
    "not executable": "echo x >s; ./s; echo $?",
    "directory as a program": "mkdir d; ./d; echo $?",
    "not a program": "printf '\\0\\1\\2\\3' >s; chmod +x s; ./s; echo $?",
    "missing interpreter": "printf '#!/nonexistent\\n' >s; chmod +x s; ./s; echo $?",
    "not found": "nonexistent-command-of-ours; echo $?",
    "pipeline": "seq 1 500 | sort -rn | head -3 | tr '\\n' ,",
    "background": "(echo a; exit 3) & wait $!; echo $?",
    "waitid without a child": (
        "python3 -S -c 'import ctypes\ninfo = (ctypes.c_int * 8)(*[7] * 8)\n"
        "print(ctypes.CDLL(None).waitid(0, 0, info, 4), *info[:3], *info[4:])'"
    ),
    "trap": "trap 'echo caught' USR1; kill -USR1 $$; echo after",
    "coreutils": (
        "mkdir -p a/b; echo hello >a/b/f; cp -r a c; mv c d; ln -s f a/b/l; ls -R; cat d/b/f; "
        "stat -c %s a/b/f; du -s --apparent-size a/b/f | cut -f1; wc a/b/f; sha256sum a/b/l; rm -r a d"
    ),
    "find and xargs": "mkdir d; touch d/1 d/2 d/3; find d -type f | sort | xargs -n1 basename",
    "tar": "mkdir d; seq 1 999 >d/f; tar cf d.tar d; rm -r d; tar xf d.tar; tail -1 d/f; tar tf d.tar",
    "gzip": "seq 1 5000 >f; gzip -k f; gunzip -c f.gz | cmp - f && echo same",
    "sed and awk": "seq 1 9 | sed 's/5/five/' | awk '{ print NR, $1 }'",
    "descriptors": "exec 5>f; echo five >&5; exec 5>&-; cat f; echo x 2>/dev/null >&5; echo $?",
    "limited descriptors": "ulimit -n 40; echo ok; exec 9</etc/passwd; head -1 <&9 | wc -l",
    "here document": "cat <<X\n$((6 * 7))\nX",
    "git": (
        "export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='1 +0000' GIT_COMMITTER_DATE='1 +0000'; "
        "git init -q -b main r; cd r; git config user.email a@b; git config user.name n; seq 1 99 >f; "
        "git add f; git commit -qm one; echo x >>f; git commit -qam two; git log --format=%H; "
        "git gc -q; git fsck; git clone -q . ../c; cd ../c; git log --oneline | wc -l"
    ),
    "sqlite": (
        "sqlite3 x.db 'pragma journal_mode=wal; create table t(a); insert into t values (1), (2); "
        "select sum(a) from t;'"
    ),
    "perl": (
        'perl -e \'$SIG{ALRM} = sub { print "alarm\\n" }; use Time::HiRes qw(ualarm); ualarm(20000); '
        'select(undef, undef, undef, 5); print `echo child`; system("exit 3"); print $? >> 8\''
    ),
    "compile": (
        "printf '#include <stdio.h>\\nint main(void) { puts(\"compiled\"); return 5; }\\n' >x.c; "
        "gcc -O1 x.c -o x; ./x; echo $?"
    ),
    "static program": "echo 'int main(void) { return 9; }' >x.c; gcc -static x.c -o x; ./x; echo $?",
    "position-dependent program": (
        "echo 'int main(void) { return 8; }' >x.c; gcc -no-pie x.c -o x; ./x; echo $?"
    ),
    "make": "printf 'all: a b\\na b:\\n\\t@echo $@ >$@\\n' >Makefile; make -s -j2; cat a b",
    "python": "python3 -S -c 'import os, mmap; print(os.listdir(\"/\") != [], mmap.PAGESIZE)'",
    "subprocess": (
        'python3 -S -c \'import subprocess as s; print(s.run(["echo", "x"], capture_output=True)); '
        'print(s.run("exit 4", shell=True).returncode, s.getoutput("printf y"))\''
    ),
    "multiprocessing": (
        "printf 'import multiprocessing as m\\ndef f(x): return x * x\\n"
        'if __name__ == "__main__":\\n for how in ("fork", "spawn"):\\n'
        "  with m.get_context(how).Pool(2) as p: print(p.map(f, range(5)))\\n' >x.py; python3 x.py"
    ),
    "threads": (
        "python3 -S -c 'import threading, os\nr = []\n"
        'def f(i):\n for _ in range(50): os.stat("/")\n r.append(i)\n'
        "t = [threading.Thread(target=f, args=(i,)) for i in range(8)]\n"
        "[x.start() for x in t]; [x.join() for x in t]; print(sorted(r))'"
    ),
    "socket": (
        'python3 -S -c \'import socket, threading\na, b = socket.socketpair(); b.send(b"x" * 9)\n'
        'print(a.recv(99)); s = socket.create_server(("127.0.0.1", 0))\n'
        'c = socket.create_connection(s.getsockname()); d, _ = s.accept(); c.send(b"y"); print(d.recv(9))\''
    ),
    "asyncio": (
        "python3 -S -c 'import asyncio\nasync def main():\n"
        ' p = await asyncio.create_subprocess_exec("echo", "z", stdout=-1)\n'
        " print(await p.communicate())\nasyncio.run(main())'"
    ),
    "signals of python": (
        'python3 -S -c \'import signal, os\nsignal.signal(10, lambda *a: print("handler"))\n'
        "os.kill(os.getpid(), 10); print(signal.getsignal(10) is not None, signal.sigpending())\n"
        "signal.pthread_sigmask(0, range(1, 65)); print(signal.SIGSYS in signal.pthread_sigmask(0, []))'"
    ),
    "session": "setsid sh -c 'echo own' | cat; nohup echo up 2>/dev/null; nice -n1 echo nice",
    "timeout": "timeout 0.2 sleep 9; echo $?; timeout 9 echo in time",
    "proc": "cat /proc/self/comm; tr '\\0' ' ' </proc/self/cmdline",
    "environment": "X=1 Y=2 env | grep -E '^[XY]='; python3 -S -c 'import os; print(len(os.environ))'",
}
