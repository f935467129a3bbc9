"""Every number of the wire in one table.

    limit          value        what it bounds                                    precedent
    head_line      16,384 B     the request line and each header line             Apache 8,190 a line, h11 16 KiB a head
    header_lines   100          header lines of one head                          Apache 100, nginx unlimited in 32 KiB
    body           16 MiB       a request's body, as announced                    nginx 1 MiB, Ollama none
    connections    32           open connections of both addresses together       uvicorn none, Apache 256
    spare          1 s          idle, until a connection gives way where none is free nginx at once, Apache never
    excess         96           connections beyond these, waiting for their 503   none: more are closed unanswered
    head           30 s         a complete head, from its first byte               Apache 20-40 s, nginx 60 s
    idle           30 s         a connection kept alive, until the next head      Apache 5 s, nginx 75 s
    body_pause     30 s         between two parts of a body                       nginx 60 s
    body_time      300 s        a complete body, at any rate                      Apache 20 s and 500 B/s, nginx none
    write_pause    120 s        between two bytes the client takes                nginx 60 s
    drain          0.2 s        reading from a client that will get 503           the loopback rules
    linger         10 s         reading on after the last answer's last byte      nginx lingering_time 30 s, Apache 2 s
    grace          4 s          from a signal until what still runs is abandoned  systemd 90 s
    ahead          64 KiB       pipelined bytes kept while an answer is computed  node 16 KiB
    backlog        32 MiB       streamed bytes queued for a slow client; more end it    none
    engine_body    64 MiB       a body, a chunk or an event of the engine's           nginx 4 or 8 KiB, then a file
    engine_line    1,024 B      the line before a chunk of the engine's               h11 20 hex digits
    engine_kept    32           connections to the engine kept for the next request   nginx keepalive, 32 in its example
    engine_idle    4 s          how long one is kept                                  llama-server closes it after 5 s
    engine_answer  30 s         the engine's answer that takes no generation          nginx 60 s
    engine_silence 3600 s       between two bytes of a generation from the engine       nginx 60 s
    engine_rehash  900 s        between two hashes of the file the engine serves      none

A line's bytes are those before its CR LF: a line of 16,384 passes, one of 16,385 does not. The request line is no
header line. `head` counts from the connection's acceptance for its first request. One write may exceed `backlog`; at
the next the client is disconnected.
"""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Limits:
    """Sizes in bytes, times in seconds. The defaults are what bankML promises; tests pass smaller ones."""

    head_line: int = 16 * KIB
    header_lines: int = 100
    body: int = 16 * MIB
    connections: int = 32
    spare: float = 1.0
    excess: int = 96
    head: float = 30.0
    idle: float = 30.0
    body_pause: float = 30.0
    body_time: float = 300.0
    write_pause: float = 120.0
    drain: float = 0.2
    linger: float = 10.0
    grace: float = 4.0
    ahead: int = 64 * KIB
    backlog: int = 32 * MIB
    engine_body: int = 64 * MIB
    engine_line: int = 1 * KIB
    engine_kept: int = 32
    engine_idle: float = 4.0
    engine_answer: float = 30.0
    engine_silence: float = 3600.0
    engine_rehash: float = 900.0
