"""Detects whether a client that has closed its sending side still reads.

`close` and `shutdown(SHUT_WR)` send the same FIN; TCP distinguishes them only when we send something and a closed
socket replies with a reset. A streamed response sends something soon. Before a buffered response nothing is sent,
perhaps for minutes, so the kernel is queried: both ends of a loopback connection are on this machine, and a socket that
no process has open has no inode. Linux answers the query in about 13 µs (sock_diag(7), no privilege needed). Where the
query is not available, a client that has closed its sending side counts as gone, as in llama-server.

The same query is made for a client that has pipelined more than is buffered: its socket is not read meanwhile, so
neither its FIN nor a reset would be noticed.
"""

import errno
import socket
import struct

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_NLMSG_ERROR = 2
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence number, port id
_FAMILY = struct.Struct("=BBBBI")  # inet_diag_req_v2: family, protocol, extensions, padding, states
_ANY = struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # any interface, no cookie
_INODE_OFFSET = _HEADER.size + 4 + 48 + 16  # inet_diag_msg: four bytes, the socket's id, four numbers, the inode

SocketName = tuple[str, int]


def still_reads(ours: SocketName, theirs: SocketName) -> bool | None:
    """Whether a process has the socket `theirs` of the connection from `theirs` to `ours` open, both (host, port).

    None where the kernel cannot be queried.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.settimeout(1.0)
            if _inode(kernel, ours, theirs) is None:
                return None  # our own socket exists, so this kernel does not support the query
            return bool(_inode(kernel, theirs, ours))
    except (AttributeError, OSError):
        return None


def _inode(kernel: socket.socket, local: SocketName, remote: SocketName) -> int | None:
    """The inode of the socket bound to `local` and connected to `remote`; 0 for an orphan, None if there is none."""
    family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
    addresses = b"".join(socket.inet_pton(family, name[0]).ljust(16, b"\0") for name in (local, remote))
    body = _FAMILY.pack(family, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + struct.pack("!HH", local[1], remote[1])
    body += addresses + _ANY
    kernel.send(_HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + body)
    answer = kernel.recv(8192)
    _, kind, _, _, _ = _HEADER.unpack_from(answer)
    if kind == _NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", answer, _HEADER.size)
        if code == -errno.ENOENT:
            return None
        raise OSError(-code, "sock_diag")
    inode: int = struct.unpack_from("=I", answer, _INODE_OFFSET)[0]
    return inode
