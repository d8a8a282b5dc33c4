"""Take from Python what macOS does not have. Python loads this at its start, before anything else."""

import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time
import types

LINUX_ONLY = {
    os: """pidfd_open memfd_create getrandom setxattr getxattr listxattr removexattr
        posix_fadvise posix_fallocate copy_file_range splice eventfd O_PATH O_TMPFILE
        O_NOATIME O_DIRECT getresuid setresuid getresgid setresgid unshare setns pipe2 fdatasync""",
    fcntl: """F_SETLEASE F_GETLEASE F_NOTIFY F_SETPIPE_SZ F_GETPIPE_SZ F_ADD_SEALS F_OFD_SETLK F_OFD_SETLKW
        F_SETSIG F_GETSIG DN_MODIFY""",
    signal: "pidfd_send_signal sigtimedwait sigwaitinfo SIGPWR SIGPOLL SIGRTMIN SIGRTMAX",
    select: "epoll",
    time: "CLOCK_BOOTTIME CLOCK_REALTIME_COARSE CLOCK_MONOTONIC_COARSE CLOCK_TAI",
    socket: """SO_PEERCRED SO_MARK AF_NETLINK AF_VSOCK SOCK_CLOEXEC SOCK_NONBLOCK TCP_QUICKACK
        TCP_USER_TIMEOUT TCP_KEEPIDLE""",
    resource: "prlimit",
}

for module, names in LINUX_ONLY.items():
    for name in names.split():
        vars(module).pop(name, None)
sys.platform = "darwin"
proxies = types.ModuleType("_scproxy")
vars(proxies).update(_get_proxy_settings=dict, _get_proxies=dict)
sys.modules["_scproxy"] = proxies
