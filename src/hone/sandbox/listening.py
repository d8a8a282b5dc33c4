"""Listen inside a sandbox, hand the listener to Hone, and become the command.

This file runs inside the sandbox; its text is passed to the interpreter. A socket belongs to the network it
was made in, so Hone can accept what the command connects to although the two share no network. It imports
_socket instead of socket, which takes ten times as long to load.
"""

import _socket
import os
import signal
import struct
import sys


def main() -> None:
    channel, port, *command = sys.argv[1:]
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", int(port)))
    listener.listen(64)
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", listener.fileno()))
    outside = _socket.socket(fileno=int(channel))
    outside.sendmsg([b"."], [rights])
    outside.close()
    listener.close()
    # Python ignores these, and a command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
