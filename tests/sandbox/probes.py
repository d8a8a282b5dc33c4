"""Attempts to get out of a cell. Run inside it, as a text handed to the interpreter: standard library only.

A probe that ends has got out, unless it says False; an OSError is a refusal. What only the outside can see (a
datagram that came, a file that changed) is judged there, see `worker`. A probe marked `harmful` would leave a
mark on a machine that does not stop it, so it is left out where nothing is confined.
"""

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from typing import Any

Probe = Callable[[], object]

AT: dict[str, Any] = {}
PROBES: list[tuple[Probe, bool]] = []
libc = ctypes.CDLL(None, use_errno=True)


def probe(function: Probe) -> Probe:
    PROBES.append((function, False))
    return function


def harmful(function: Probe) -> Probe:
    PROBES.append((function, True))
    return function


def content(path: str) -> bool:
    with open(path, "rb") as file:
        return bool(file.read(100))


def outside(name: str) -> str:
    return os.path.join(AT["outside"], name)


def call(number: int, *arguments: Any) -> int:
    """A system call by its number on this machine."""
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result = int(libc.syscall(ctypes.c_long(number), *words))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def x86(number: int, generic: int) -> int:
    return number if os.uname().machine == "x86_64" else generic


def connects(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> bool:
    with socket.socket(family, kind) as each:
        each.settimeout(3)
        each.connect(address)
        each.send(b"got out")
    return kind == socket.SOCK_STREAM


# Files: reading.


@probe
def read_a_file_outside() -> object:
    return content(outside("secret"))


@probe
def read_through_two_dots() -> object:
    return content(os.path.join("..", os.path.basename(AT["outside"]), "secret"))


@probe
def read_through_a_new_link() -> object:
    os.symlink(outside("secret"), "new-link")
    return content("new-link")


@probe
def read_through_a_link_that_was_there() -> object:
    return content("planted/secret")


@probe
def read_through_a_hard_link() -> object:
    os.link(outside("secret"), "hard-link")
    return content("hard-link")


@probe
def list_a_folder_outside() -> object:
    return "secret" in os.listdir(AT["outside"])


@probe
def read_the_shadow_file() -> object:
    return content("/etc/shadow")


@probe
def read_the_home_of_root() -> object:
    return content("/root/.bashrc") or content("/root/.profile")


@probe
def read_the_home_of_hone() -> object:
    return content(os.path.join(AT["home"], "hone.db"))


@probe
def list_the_home_of_hone() -> object:
    return "hone.db" in os.listdir(AT["home"])


@probe
def read_shared_memory_files() -> object:
    return content(AT["shared"])


@probe
def read_through_the_root_of_another_process() -> object:
    return content(f"/proc/{AT['victim']}/root{outside('secret')}")


@probe
def read_through_the_root_of_the_first_process() -> object:
    return content(f"/proc/1/root{outside('secret')}")


@probe
def read_through_the_folder_of_another_process() -> object:
    return content(f"/proc/{AT['victim']}/cwd/secret")


@probe
def read_through_an_open_file_of_another_process() -> object:
    return any(content(f"/proc/{AT['victim']}/fd/{number}") for number in range(3, 6))


@probe
def find_an_open_file_that_was_left() -> object:
    kinds = [os.fstat(int(name)).st_mode for name in range(3, 64) if _is_open(name)]
    return any(stat.S_ISREG(kind) or stat.S_ISDIR(kind) or stat.S_ISSOCK(kind) for kind in kinds)


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


@probe
def open_a_file_by_its_handle() -> object:
    handle = struct.pack("=IiQ", 8, 1, 2)  # the root of the file system
    mount = os.open(".", os.O_RDONLY)
    return bool(os.listdir(call(x86(304, 265), mount, ctypes.c_char_p(handle), os.O_RDONLY)))


# Files: writing.


@probe
def append_to_a_file_outside() -> None:
    with open(outside("append"), "ab") as file:
        file.write(b"got out")


@probe
def make_a_file_outside() -> None:
    open(outside("made"), "x").close()


@probe
def empty_a_file_outside() -> None:
    os.truncate(outside("truncate"), 0)


@probe
def delete_a_file_outside() -> None:
    os.unlink(outside("delete"))


@probe
def rename_a_file_outside() -> None:
    os.rename(outside("rename"), outside("renamed"))


@probe
def move_a_file_out() -> None:
    open("mine", "x").close()
    os.rename("mine", outside("moved"))


@probe
def link_a_file_out() -> None:
    open("mine-too", "x").close()
    os.link("mine-too", outside("linked"))


@probe
def make_a_folder_outside() -> None:
    os.mkdir(outside("folder"))


@probe
def make_a_link_outside() -> None:
    os.symlink("/", outside("symlink"))


@probe
def change_the_mode_of_a_file_outside() -> None:
    os.chmod(outside("chmod"), 0o777)


@probe
def change_the_mode_through_a_link() -> None:
    os.chmod("planted/chmod", 0o777)


@probe
def change_the_mode_through_a_descriptor() -> None:
    folder = os.open("planted", os.O_PATH)
    os.chmod("chmod", 0o777, dir_fd=folder)


@probe
def change_the_mode_while_a_link_takes_the_files_place() -> object:
    open("race-file", "x").close()
    os.symlink(outside("chmod"), "race-link")
    os.symlink("race-file", "race")
    child = os.fork()
    if child == 0:
        for number in range(2_000):
            os.symlink(("race-file", "race-link")[number % 2], "race-new")
            os.rename("race-new", "race")
        os._exit(0)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        with contextlib.suppress(OSError):
            os.chmod("race", 0o777)
    return stat.S_IMODE(os.stat(outside("chmod")).st_mode) == 0o777


@probe
def change_the_times_of_a_file_outside() -> None:
    os.utime(outside("utime"), (1, 1))


@probe
def change_attributes_of_a_file_outside() -> None:
    os.setxattr(outside("xattr"), "user.got", b"out")


@harmful
def write_a_program() -> None:
    open("/usr/local/bin/hone-probe", "x").close()


@harmful
def write_a_setting_of_the_system() -> None:
    open("/etc/hone-probe", "x").close()


@harmful
def write_in_the_root_folder() -> None:
    open("/hone-probe", "x").close()


@probe
def change_the_interpreter() -> object:
    os.close(os.open(os.path.realpath(sys.executable), os.O_WRONLY))
    return True


@probe
def change_the_code_of_hone() -> object:
    os.close(os.open(os.path.join(AT["code"], "hone", "sandbox", "supervisor.py"), os.O_WRONLY))
    return True


# Processes.


@probe
def signal_another_process() -> object:
    os.kill(AT["victim"], 0)
    return _is_the_victim()


def _is_the_victim() -> bool:
    """A number may belong to another process in here; then nothing was reached."""
    return (
        os.readlink("/proc/self/ns/pid") == AT["namespace"] if os.path.exists("/proc/self/ns/pid") else True
    )


@probe
def read_the_environment_of_another_process() -> object:
    with open(f"/proc/{AT['victim']}/environ", "rb") as file:
        return b"canary" in file.read()


@probe
def read_the_arguments_of_another_process() -> object:
    with open(f"/proc/{AT['victim']}/cmdline", "rb") as file:
        return b"canary" in file.read()


@probe
def trace_another_process() -> object:
    call(x86(101, 117), 0x4206, AT["victim"], 0, 0)
    return _is_the_victim()


@probe
def read_the_memory_of_another_process() -> object:
    buffer = ctypes.create_string_buffer(8)
    vector = struct.pack("@PN", ctypes.addressof(buffer), 8)
    target = struct.pack("@PN", AT["address"], 8)
    call(x86(310, 270), AT["victim"], ctypes.c_char_p(vector), 1, ctypes.c_char_p(target), 1, 0)
    return True


@probe
def limit_another_process() -> object:
    resource.prlimit(AT["victim"], resource.RLIMIT_CORE, (0, 0))
    return _is_the_victim()


@probe
def kill_the_parent() -> object:
    os.kill(AT["parent"], 0)
    return AT["parent"] != 1


@probe
def share_memory_with_another_process() -> object:
    libc.shmat.restype = ctypes.c_void_p
    segment = call(x86(29, 194), AT["key"], 0, 0)
    address = libc.shmat(segment, None, 0o10000)
    return bool(address) and ctypes.string_at(address, 6) == b"canary"


@probe
def type_into_a_terminal() -> None:
    with open(AT["terminal"], "wb", buffering=0) as file:
        file.write(b"got out")


# The network, and the sockets of other programs.


@probe
def connect_to_loopback() -> object:
    return connects(socket.AF_INET, ("127.0.0.1", AT["port"]))


@probe
def connect_to_loopback_6() -> object:
    return connects(socket.AF_INET6, ("::1", AT["port6"]))


@probe
def connect_to_an_address_of_the_machine() -> object:
    return connects(socket.AF_INET, (AT["address4"], AT["port"]))


@probe
def send_a_datagram() -> object:
    return connects(socket.AF_INET, ("127.0.0.1", AT["datagrams"]), socket.SOCK_DGRAM)


@probe
def ask_a_name_server() -> object:
    question = b"\x00\x01\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03got\x03out\x00\x00\x01\x00\x01"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as each:
        each.sendto(question, (AT["address4"], AT["datagrams"]))
    return False


@probe
def connect_to_an_abstract_socket() -> object:
    return connects(socket.AF_UNIX, "\0" + AT["abstract"])


@probe
def connect_to_a_socket_of_another_program() -> object:
    return connects(socket.AF_UNIX, outside("socket"))


@probe
def open_a_raw_socket() -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).fileno()


@probe
def open_a_packet_socket() -> object:
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).fileno()


# Rights.


@probe
def be_root() -> None:
    if os.geteuid():
        os.setuid(0)


@probe
def have_capabilities() -> object:
    header, data = struct.pack("=Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    call(x86(125, 90), ctypes.c_char_p(header), data)
    return any(data.raw)


@probe
def gain_privileges() -> object:
    return libc.prctl(39, 0, 0, 0, 0) == 0


@probe
def run_a_program_with_its_owners_rights() -> object:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writer, 1)
        os.execv("set-uid-id", ["set-uid-id", "-u"])
    os.close(writer)
    os.waitpid(child, 0)
    return os.read(reader, 100) == b"0\n"


@probe
def leave_a_set_uid_file_by_chmod() -> None:
    open("s1", "x").close()
    os.chmod("s1", 0o4755)


@probe
def leave_a_set_uid_file_by_fchmod() -> None:
    with open("s2", "x") as file:
        os.fchmod(file.fileno(), 0o6755)


@probe
def leave_a_set_uid_file_by_open() -> object:
    os.close(os.open("s3", os.O_CREAT | os.O_WRONLY, 0o4755))
    return bool(os.stat("s3").st_mode & 0o4000)


@probe
def leave_a_set_uid_file_by_mknod() -> object:
    os.mknod("s4", stat.S_IFREG | 0o4755)
    return bool(os.stat("s4").st_mode & 0o4000)


@probe
def leave_a_set_uid_file_by_a_new_call() -> object:
    open("s5", "x").close()
    return call(452, -100, ctypes.c_char_p(b"s5"), 0o4755, 0) == 0


@probe
def give_a_file_away() -> None:
    open("gift", "x").close()
    os.chown("gift", 1, 1)


@probe
def make_a_device() -> object:
    os.mknod("device", stat.S_IFBLK | 0o666, os.makedev(*AT["disk"]))
    return True


@probe
def open_a_device() -> object:
    found = 0
    for name in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/port", "/dev/fuse"):
        try:
            os.close(os.open(name, os.O_RDWR))
            found += 1
        except OSError as error:
            last = error
    if not found:
        raise last
    return found


@harmful
def mount_something() -> object:
    os.mkdir("mount")
    return libc.mount(b"x", b"mount", b"tmpfs", 0, None) == 0


@harmful
def change_the_root() -> None:
    os.chroot(".")


@probe
def make_a_namespace() -> object:
    return libc.unshare(0x10000000) == 0


@probe
def join_a_namespace() -> object:
    file = os.open(f"/proc/{AT['victim']}/ns/mnt", os.O_RDONLY)
    return libc.setns(file, 0) == 0


@probe
def change_a_kernel_setting() -> object:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))
    return True


@probe
def reach_the_kernels_emergency_keys() -> object:
    os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY))
    return True


@probe
def write_to_the_device_tree() -> object:
    os.close(os.open("/sys/kernel/uevent_helper", os.O_WRONLY))
    return True


@harmful
def set_the_clock() -> object:
    now = ctypes.create_string_buffer(16)
    libc.clock_gettime(0, now)
    return libc.clock_settime(0, now) == 0


@harmful
def load_a_module() -> object:
    try:
        call(x86(175, 105), ctypes.c_char_p(b"no module"), 9, ctypes.c_char_p(b""))
    except OSError as error:
        return error.errno not in {errno.EPERM, errno.ENOSYS, errno.EACCES}
    return True


@harmful
def rename_the_machine() -> object:
    return libc.sethostname(b"got-out", 7) == 0


@probe
def use_a_keyring() -> object:
    return call(x86(250, 219), 0, -4, 1) > 0


@probe
def use_a_ring_of_requests() -> object:
    return call(425, 4, ctypes.create_string_buffer(256)) > 0


def attempt(function: Probe) -> str:
    """In a process of its own, so that one cannot spoil another."""
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os._exit(0 if function() is False else 1)
        except OSError:
            os._exit(0)
        finally:
            os._exit(2)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "refused", 1: "got out"}.get(code, f"broke ({code})")


def main() -> None:
    AT.update(json.loads(sys.argv[1]), parent=os.getppid())
    chosen = [each for each, marks in PROBES if not (marks and AT["unconfined"])]
    print(json.dumps({each.__name__: attempt(each) for each in chosen}))


if __name__ == "__main__":
    main()
