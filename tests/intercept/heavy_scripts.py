"""Programs that are large, or packages of their own: as mount_scripts.py, for the sweeps.

Each leaves what it likes in its working directory and prints nothing that depends on where it is or
when it runs.
"""

# ruff: noqa: E501

_AS_SOMEBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all"

#: PostgreSQL refuses to run as root: every process of it is nobody, with no capability.
_POSTGRES = (
    "PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -1):$PATH; mkdir s; export PGHOST=$PWD/s PGUSER=u PGDATABASE=postgres; "
    'chmod 777 . s; as() { if [ "$(id -u)" = 0 ]; then '
    + _AS_SOMEBODY
    + ' "$@"; else "$@"; fi; }; '
    "as initdb -D d -U u -A trust -N --no-locale >log 2>&1 || cat log; "
    "echo \"listen_addresses = ''\" >>d/postgresql.conf; echo \"unix_socket_directories = '$PWD/s'\" >>d/postgresql.conf; "
    "as pg_ctl -D d -l $PWD/s/server.log -w start >log 2>&1 || cat log s/server.log; "
)

_FIO = (
    "fio --name=j --filename=f --size=4m --bs=4k --rw=randrw --verify=crc32c --do_verify=1 --verify_fatal=1 "
    "--randrepeat=1 --thread --output-format=terse --terse-version=3 "
)

#: Name -> (commands it needs, script for /bin/sh).
HEAVY_SCRIPTS = {
    "rsync": (
        ("rsync",),
        "mkdir -p a/b; seq 1 9999 >a/f; seq 1 99 >a/b/g; ln -s f a/l; ln a/f a/h; rsync -aH a/ c; rsync -aH --delete "
        "--stats a/ c | grep 'files transferred'; echo more >>a/f; rm a/b/g; rsync -aHi --delete a/ c | grep -o '[^ ]*$' | grep -v '/$' | sort; diff -r a c "
        "&& stat -c %h c/f; rsync -a --inplace --checksum a/f c/g; cmp a/f c/g; ls -A c",
    ),
    "fio by psync": (("fio",), _FIO + "--ioengine=psync >log; cut -d';' -f3,5 log; stat -c %s f"),
    "fio by mmap": (("fio",), _FIO + "--ioengine=mmap >log; cut -d';' -f3,5 log; stat -c %s f"),
    "fio by libaio": (
        ("fio",),
        _FIO + "--ioengine=libaio --iodepth=16 >log; cut -d';' -f3,5 log; stat -c %s f",
    ),
    "man in its sandbox": (
        ("man", "/usr/share/man/man1/ls.1.gz"),
        "cp /usr/share/man/man1/ls.1.gz .; man -l ls.1.gz | cksum; gunzip ls.1.gz; man -l ./ls.1 | head -1",
    ),
    "busybox": (
        ("busybox",),
        "mkdir d; busybox seq 1 500 >d/f; busybox cp -a d e; busybox tar czf t.gz d; busybox rm -r d; busybox tar xzf t.gz; "
        "busybox diff -r d e; busybox find . -type f | busybox sort; busybox sed -i s/7/seven/ d/f; busybox grep -c seven d/f; "
        "busybox sh -c 'cd d; busybox ls -l f | busybox awk \"{ print \\$5 }\"; echo x >g; busybox mv g h; busybox cat h'",
    ),
    "venv and pip from a local wheel": (
        (),
        "export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore HOME=$PWD; mkdir -p w/p; "
        "echo 'def f(): return 6 * 7' >w/p/__init__.py; (cd w; mkdir p-1.dist-info; "
        "printf 'Metadata-Version: 2.1\\nName: p\\nVersion: 1\\n' >p-1.dist-info/METADATA; "
        "printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' >p-1.dist-info/WHEEL; "
        "printf 'p/__init__.py,,\\np-1.dist-info/METADATA,,\\np-1.dist-info/WHEEL,,\\np-1.dist-info/RECORD,,\\n' >p-1.dist-info/RECORD; "
        "/usr/bin/python3 -m zipfile -c ../p-1-py3-none-any.whl p p-1.dist-info); "
        "/usr/bin/python3 -m venv v; v/bin/pip -q install ./p-1-py3-none-any.whl; v/bin/python -c 'import p; print(p.f())'; "
        "v/bin/pip list 2>/dev/null | grep '^p '; v/bin/pip -q uninstall -y p; v/bin/python -c 'import p' 2>&1 | tail -1",
    ),
    "numpy": (
        ("/usr/lib/python3/dist-packages/numpy",),
        '/usr/bin/python3 -c \'\nimport numpy as n\na = n.arange(300000, dtype="f8").reshape(300, 1000); n.save("a.npy", a)\n'
        'b = n.load("a.npy", mmap_mode="r"); print(b.sum(), b[7, 9], type(b).__name__)\n'
        'c = n.load("a.npy", mmap_mode="r+"); c[3] = 1; c.flush(); d = n.load("a.npy"); print(d[3].sum())\n'
        'e = n.load("a.npy", mmap_mode="c"); e[4] = 2; print(e[4].sum(), n.load("a.npy")[4].sum())\n'
        'm = n.memmap("m", dtype="i4", mode="w+", shape=(1000, 1000)); m[:] = 5; del m\n'
        'print(n.fromfile("m", dtype="i4").sum(), n.memmap("m", dtype="i4")[999999])\n'
        'n.savez_compressed("z.npz", a=a, b=a[:2]); z = n.load("z.npz"); print(z["b"].sum()); a.tofile("t"); print(n.fromfile("t").sum())\'',
    ),
    "torch": (
        ("/usr/lib/python3/dist-packages/torch",),
        '/usr/bin/python3 -c \'\nimport torch as t\nx = t.arange(100000.0).reshape(100, 1000); t.save({"x": x}, "x.pt")\n'
        'print(t.load("x.pt")["x"].sum().item()); s = t.FloatStorage.from_file("s", shared=True, size=1000); s.fill_(2.0)\n'
        'del s; print(sum(t.FloatStorage.from_file("s", shared=False, size=1000)))\n'
        "class D(t.utils.data.Dataset):\n"
        ' def __len__(self): return 64\n def __getitem__(self, i): return t.load(f"i{i % 4}.pt")\n'
        'for i in range(4): t.save(t.full((10,), float(i)), f"i{i}.pt")\n'
        "print(sum(b.sum().item() for b in t.utils.data.DataLoader(D(), batch_size=8, num_workers=2)))'",
    ),
    "node": (
        ("node",),
        r"""
mkdir -p node_modules/m d; echo 'exports.six = 6' >node_modules/m/index.js; cat >main.js <<'E'
const fs = require('fs'), { six } = require('m'), { execFileSync } = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');

function files() {
  fs.writeFileSync('d/f', 'x'.repeat(100000)); fs.appendFileSync('d/f', 'end');
  fs.mkdirSync('d/a/b', { recursive: true }); fs.symlinkSync('../f', 'd/a/l');
  console.log(six, fs.statSync('d/a/l').size, fs.readdirSync('d').sort(), execFileSync('tail', ['-c3', 'd/f']).toString());
  console.log(fs.realpathSync('d/a/l') === fs.realpathSync('d/f'));
  try { fs.readFileSync('none') } catch (e) { console.log(e.code) }
}

async function streams() {
  const out = fs.createWriteStream('d/g');
  for (let i = 0; i < 1000; i++) out.write(i + '\n');
  await new Promise(done => out.end(done));
  let lines = 0;
  for await (const part of fs.createReadStream('d/g')) lines += part.toString().split('\n').length - 1;
  console.log(lines, (await fs.promises.stat('d/g')).size);
}

function trees() {
  fs.renameSync('d/g', 'd/h'); fs.cpSync('d', 'e', { recursive: true });
  fs.rmSync('d', { recursive: true }); fs.renameSync('e', 'd');
  new Worker(__filename).on('message', size => { console.log(size, fs.readdirSync('.').sort()) });
}

if (isMainThread) { files(); streams().then(trees) } else parentPort.postMessage(fs.readFileSync('d/f', 'utf8').length);
E
node main.js && ls d""",
    ),
    "cmake": (
        ("cmake", "make", "cc"),
        r"""
mkdir s; cat >s/CMakeLists.txt <<'E'
cmake_minimum_required(VERSION 3.18)
project(p C)
add_library(l SHARED l.c)
add_executable(m m.c)
target_link_libraries(m l)
set(SIX 6)
configure_file(c.h.in c.h)
target_include_directories(m PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
enable_testing()
add_test(NAME t COMMAND m)
E
echo 'int f(int x) { return 7 * x; }' >s/l.c; echo '#define SIX @SIX@' >s/c.h.in
cat >s/m.c <<'E'
#include <stdio.h>
#include "c.h"
int f(int);
int main(void) { return printf("%d\n", f(SIX)) < 0; }
E
cmake -S s -B b >log && cmake --build b -j 2 >>log && b/m && cmake --build b | tail -1
sleep 0.01; touch s/l.c; cmake --build b | grep -c Building; cd b; ctest 2>&1 | grep 'tests passed'; ls *.so m""",
    ),
    "rclone": (
        ("rclone",),
        r"""
touch conf; export RCLONE_CONFIG=$PWD/conf; mkdir -p a/b; seq 1 9999 >a/f; seq 1 99 >a/b/g
rclone -q copy a c; rclone -q check a c && echo same; echo more >>a/f; rm a/b/g; rclone -q sync a c
find c | sort; cmp a/f c/f; rclone lsf -R c | sort; rclone -q moveto c/f c/h; rclone md5sum c | cut -c1-32
rclone cat c/h | tail -1; rclone -q purge c; ls""",
    ),
    "a JVM": (
        ("java",),
        "printf '%s\\n' 'import java.nio.*; import java.nio.channels.*; import java.nio.file.*; import java.util.stream.*;' "
        "'public class Main { public static void main(String[] a) throws Exception {' "
        '\'Path d = Files.createDirectories(Path.of("d/e")); Path f = d.resolve("f");\' '
        "'Files.writeString(f, \"line one\\nline two\\n\"); System.out.println(Files.readAllLines(f));' "
        "'try (FileChannel c = FileChannel.open(f, StandardOpenOption.READ, StandardOpenOption.WRITE)) {' "
        "'MappedByteBuffer m = c.map(FileChannel.MapMode.READ_WRITE, 0, 64); m.put(0, (byte) 76); m.force();' "
        "'System.out.println(c.size() + \" \" + c.tryLock().isValid()); }' "
        "'System.out.println(Files.readString(f).charAt(0)); Files.move(f, Path.of(\"g\"));' "
        '\'Files.copy(Path.of("g"), Path.of("h")); try (Stream<Path> s = Files.walk(Path.of("."))) {\' '
        "'s.filter(p -> !p.toString().contains(\"hsperf\")).sorted().forEach(System.out::println); }' "
        '\'System.out.println(Files.mismatch(Path.of("g"), Path.of("h"))); } }\' >Main.java; java -Xshare:auto Main.java; echo $?',
    ),
    "postgres": (
        ("setpriv",),
        _POSTGRES
        + "as pgbench -i -s 1 -q >log 2>&1 || cat log; as pgbench -c 2 -j 2 -t 40 >log 2>&1 || cat log; "
        "grep 'actually processed' log; as psql -Atc 'select count(*), sum(abalance) - sum(bbalance) from pgbench_accounts a, "
        "pgbench_branches b where a.bid = b.bid' | cut -d'|' -f1; as psql -Atc 'create table t as select i, md5(i::text) m from "
        "generate_series(1, 20000) i; create index on t(m); checkpoint; select count(distinct m) from t'; "
        "as pg_ctl -D d -m immediate stop >log 2>&1; as pg_ctl -D d -l $PWD/s/server.log -w start >log 2>&1 || cat log s/server.log; "
        "as psql -Atc 'select count(*) from t'; as pg_dump -t t | grep -c '^[0-9]'; as pg_ctl -D d -m fast stop >log 2>&1; echo $?",
    ),
}
