/*
 * help.c - the texts of --help and --version, and what the library says of its version.
 */
#include "libfuse/abi.h"

int fuse_version(void)
{
    return df_abi_version.number;
}

const char *fuse_pkgversion(void)
{
    return df_abi_version.name;
}

void fuse_lowlevel_version(void)
{
    df_abi_print("served by directfuse in the calling process, without the kernel\n");
}

void fuse_cmdline_help(void)
{
    df_abi_print(
        "    -h   --help            print this text\n"
        "    -V   --version         print the version\n"
        "    -d   -o debug          accepted; what is called is in the mount's statistics\n"
        "    -f                     accepted: there is no background to go to\n"
        "    -s                     one operation at a time\n"
        "    -o clone_fd            accepted: there is no device\n"
        "    -o max_idle_threads=N  accepted: operations run on the callers' threads\n"
        "    -o max_threads=N       1: one operation at a time; else no limit\n");
}

void fuse_lowlevel_help(void)
{
    df_abi_print(
        "    -o allow_other         other users may enter\n"
        "    -o allow_root          root may enter\n"
        "    -o default_permissions mode bits are checked before the file system is asked\n"
        "    -o ro                  read-only\n"
        "    -o auto_unmount        accepted: a mount ends with its process\n");
}

void fuse_lib_help(struct fuse_args *args)
{
    (void)args; /* names modules to help with; beside the built-in ones there are none */
    df_abi_print("    -o kernel_cache        keep data cached over open\n"
                 "    -o [no]auto_cache      keep it while size and mtime stay the same (off)\n"
                 "    -o no_rofd_flush       no flush when a read-only file is closed (off)\n"
                 "    -o umask=M             permission bits to hide (octal)\n"
                 "    -o uid=N               owner of all files\n"
                 "    -o gid=N               group of all files\n"
                 "    -o entry_timeout=T     seconds that names stay cached (1.0)\n"
                 "    -o negative_timeout=T  seconds that absent names stay cached (0.0)\n"
                 "    -o attr_timeout=T      seconds that attributes stay cached (1.0)\n"
                 "    -o ac_attr_timeout=T   the same for auto_cache (attr_timeout)\n"
                 "    -o noforget            inode numbers never change\n"
                 "    -o remember=T          inode numbers stay for T seconds (0)\n"
                 "    -o modules=M1[:M2...]  modules to stack onto the file system\n");
    df_abi_print("%s", df_abi_version.help);
    fuse_lowlevel_help();
    df_abi_modules_help();
}
