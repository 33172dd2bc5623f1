"""What a hostile task tries, each contained: it is refused, the next task is fine, and outside nothing has changed.

The fixture `sandbox` checks after each test that the same sandbox still runs, with no process too many.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sandboxes import HERE, SMALL, answers, asked, own_private_file, processes_of, replied

from triptych.sandbox import End, Sandbox

REFUSED = frozenset({"ENOSYS", "EPERM", "EACCES", "ENOENT", "ESRCH", "EROFS", "EXDEV"})


def refused(said: dict[str, str]) -> None:
    """Nothing that was tried has worked."""
    assert said
    assert {name: error for name, error in said.items() if error not in REFUSED} == {}


# Taking more than allowed. What is tried first is little enough to do no harm where nothing holds it up.


@pytest.mark.parametrize("tried", [b"16", b"100"])
def test_processes_are_few(sandbox: Sandbox, tried: bytes) -> None:
    assert int(replied(sandbox.run("hostile:fork_many", tried))) == SMALL.processes - 1
    assert int(replied(sandbox.run("hostile:start_threads", tried))) == SMALL.processes - 1


def test_a_tree_of_processes_ends(sandbox: Sandbox) -> None:
    outcome = sandbox.run("hostile:fork_tree", b"8", limits=replace(SMALL, wall_s=1))
    assert outcome.end is End.TIMED_OUT


def test_a_daemon_ends_with_its_task(sandbox: Sandbox) -> None:
    assert replied(sandbox.run("prying:daemonise", b"")) == b"left one"


def test_scratch_is_small(sandbox: Sandbox) -> None:
    written, why = json.loads(replied(sandbox.run("hostile:fill_disk", b"")))
    assert (written, why) in ((SMALL.scratch_bytes, "ENOSPC"), (SMALL.scratch_bytes, "short"))
    assert replied(sandbox.run("hostile:large_file", str(SMALL.scratch_bytes + 1).encode())) == b"EFBIG"
    assert replied(sandbox.run("hostile:large_file", str(SMALL.scratch_bytes).encode())) == b"done"
    assert int(replied(sandbox.run("hostile:many_files", b""))) < 1 << 14


def test_open_files_are_few(sandbox: Sandbox) -> None:
    assert int(replied(sandbox.run("hostile:open_many", b""))) == SMALL.open_files - 4


def test_limits_stay(sandbox: Sandbox) -> None:
    refused(answers(sandbox.run("hostile:raise_limits", b"")))


def test_nobody_reads_errors_without_end(sandbox: Sandbox) -> None:
    outcome = sandbox.run("hostile:large_errors", b"64")
    assert 8 <= int(replied(outcome)) < 10
    assert len(outcome.detail) == 1024


# The channel.


@pytest.mark.parametrize(
    ("written", "end", "reply"),
    [
        (b"garbage of some length", End.EXITED, None),
        (b"", End.EXITED, None),
        (b"R" + b"\xff" * 8 + b"x", End.REPLY_TOO_LARGE, None),
        (b"R" + (1 << 20).to_bytes(8, "little"), End.REPLIED, bytes(1 << 20)),
        (b"R" + (6).to_bytes(8, "little") + b"forged", End.REPLIED, b"forged"),
        (b"M" + bytes(8), End.OUT_OF_MEMORY, None),
        (b"L" + bytes(8), End.REPLY_TOO_LARGE, None),
    ],
)
def test_whatever_is_written_is_a_reply_or_none(
    sandbox: Sandbox, written: bytes, end: End, reply: bytes | None
) -> None:
    outcome = sandbox.run("hostile:write_reply", written)
    assert (outcome.end, outcome.reply) == (end, reply)


def test_the_room_for_a_reply_keeps_its_size(sandbox: Sandbox) -> None:
    size = SMALL.reply_bytes + 9
    assert answers(sandbox.run("hostile:resize_reply", str(size - 1).encode())) == {
        "ftruncate": "EPERM",
        "write": "done",
    }
    assert answers(sandbox.run("hostile:resize_reply", str(size).encode())) == {"ftruncate": "done", "write": "EPERM"}


def test_a_task_can_close_everything(sandbox: Sandbox) -> None:
    assert sandbox.run("hostile:close_everything", b"").end in (End.REPLIED, End.EXITED, End.KILLED)


def test_only_the_tasks_own_descriptors_are_open(sandbox: Sandbox) -> None:
    said = answers(sandbox.run("hostile:use_descriptors", b""))
    names = [name.partition(" ")[2] for name, error in said.items() if error != "ENOENT"]
    assert names[0] == "/dev/null"
    assert [name.partition(":")[0] for name in names[1:]] == ["pipe", "pipe", "/memfd"]


# Others' processes.


def test_no_other_process_is_seen(sandbox: Sandbox) -> None:
    seen, own, parent = json.loads(replied(sandbox.run("prying:see_processes", b"")))
    assert (sorted(seen), parent) == ([1, own], 0)


def test_nobody_else_can_be_sent_a_signal(sandbox: Sandbox) -> None:
    others = [os.getpid(), *processes_of(sandbox), 1, -1]
    refused(answers(sandbox.run("prying:ask_processes", json.dumps(others).encode())))  # signal 0 does no harm
    refused(answers(sandbox.run("prying:kill_processes", json.dumps(others).encode())))


def test_nobody_else_can_be_looked_into(sandbox: Sandbox) -> None:
    refused(answers(sandbox.run("prying:look_into", json.dumps([1, os.getpid(), *processes_of(sandbox)]).encode())))
    said = answers(sandbox.run("prying:look_into", b'["self"]'))
    refused({name: error for name, error in said.items() if name != "self/maps"})


# Files.


def test_a_private_file_is_out_of_reach(sandbox: Sandbox, tmp_path: Path) -> None:
    private = own_private_file(tmp_path)
    refused(answers(sandbox.run("prying:reach_file", str(private).encode())))
    assert private.read_text("utf-8") == "secret"
    assert [path.name for path in tmp_path.iterdir()] == ["private"]


def test_what_can_be_read_cannot_be_changed(sandbox: Sandbox) -> None:
    before = sorted((path.name, path.stat().st_mtime_ns) for path in HERE.iterdir())
    refused(answers(sandbox.run("prying:write_readable", str(HERE).encode())))
    assert sorted((path.name, path.stat().st_mtime_ns) for path in HERE.iterdir()) == before


def test_no_program_of_its_own_is_executed(sandbox: Sandbox) -> None:
    assert replied(sandbox.run("prying:execute_scratch", b"")) == b"EACCES"


# The network.


@pytest.fixture
def listeners() -> Iterator[tuple[int, str, list[socket.socket]]]:
    """A port and a name that sockets listen at: TCP, UDP, abstract, and abstract datagrams."""
    name = f"triptych-test-{os.getpid()}"
    with (
        closing(socket.create_server(("127.0.0.1", 0))) as tcp,
        closing(socket.socket(type=socket.SOCK_DGRAM)) as udp,
        closing(socket.socket(socket.AF_UNIX)) as abstract,
        closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as datagram,
    ):
        port = tcp.getsockname()[1]
        udp.bind(("127.0.0.1", port))
        abstract.bind("\0" + name)
        abstract.listen()
        datagram.bind("\0" + name + " datagram")
        sockets = [tcp, udp, abstract, datagram]
        for each in sockets:
            each.setblocking(False)
        yield port, name, sockets


def nothing_came(sockets: list[socket.socket]) -> None:
    for each in sockets:
        with pytest.raises(BlockingIOError):
            (each.accept if each in (sockets[0], sockets[2]) else lambda each=each: each.recv(1))()


def test_no_network(sandbox: Sandbox, listeners: tuple[int, str, list[socket.socket]]) -> None:
    port, name, sockets = listeners
    refused(answers(sandbox.run("prying:connect", asked(port, name))))
    nothing_came(sockets)


# The kernel.


CALLS = [
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "fsopen",
    "move_mount",
    "open_tree",
    "mount_setattr",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "pidfd_open",
    "pidfd_getfd",
    "pidfd_send_signal",
    "kcmp",
    "keyctl",
    "add_key",
    "request_key",
    "bpf",
    "userfaultfd",
    "perf_event_open",
    "io_uring_setup",
    "io_uring_enter",
    "shmget",
    "shmat",
    "msgget",
    "semget",
    "mq_open",
    "memfd_create",
    "memfd_secret",
    "open_by_handle_at",
    "name_to_handle_at",
    "init_module",
    "finit_module",
    "kexec_load",
    "reboot",
    "swapon",
    "acct",
    "syslog",
    "settimeofday",
    "clock_settime",
    "sethostname",
    "personality",
    "seccomp",
    "landlock_restrict_self",
    "clone3",
    "socket",
    "connect",
    "bind",
    "listen",
    "accept",
    "setuid",
    "capset",
    "mknodat",
    "fanotify_init",
    "inotify_init1",
    "quotactl",
    "vmsplice",
    "process_madvise",
    "move_pages",
    "mbind",
    "nfsservctl",
    "iopl",
    "ioperm",
    "modify_ldt",
]
"""That a task must not make, by name."""


def test_dangerous_calls_are_unknown(sandbox: Sandbox) -> None:
    library = ctypes.CDLL("libseccomp.so.2")
    numbers = {name: library.seccomp_syscall_resolve_name(name.encode()) for name in CALLS}
    known = [(name, number) for name, number in numbers.items() if number >= 0]
    assert len(known) > 50
    said = answers(sandbox.run("prying:make_calls", json.dumps(known).encode()))
    assert {name: error for name, error in said.items() if error != "ENOSYS"} == {}


def test_clone_makes_no_namespaces(sandbox: Sandbox) -> None:
    number = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(b"clone")
    said = answers(sandbox.run("prying:make_namespaces", str(number).encode()))
    assert len(said) == 7
    assert set(said.values()) == {"ENOSYS"}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code")
def test_calls_of_another_architecture_end_the_task(sandbox: Sandbox) -> None:
    outcome = sandbox.run("prying:other_architecture", b"")
    assert (outcome.end, outcome.detail) == (End.KILLED, "Bad system call")


def test_no_rights_can_be_gained(sandbox: Sandbox) -> None:
    refused(answers(sandbox.run("prying:gain_rights", b"")))
