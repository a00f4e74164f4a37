"""On whose behalf calls into mounts are made: the process, whose identity is read once."""

from directfuse import _native
from directfuse._call import c_int, checked

__all__ = ["identity_refresh", "umask"]


def umask(mask: int, /) -> int:
    """os.umask: sets the umask of the process, for mounts too; the former one. Source: umask(2)."""
    return _native.umask(c_int(mask, "mask") & 0o777)


def identity_refresh() -> None:
    """Reads user, groups, capability, umask and RLIMIT_FSIZE of the process again.

    Call it after os.setuid(), os.setgroups(), os.umask() and the like; os.fork() does it itself.
    """
    checked(-_native.identity_refresh())
