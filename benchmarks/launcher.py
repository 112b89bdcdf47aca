"""Runs commands and says what each cost; started by clock.py as a process of its own.

A process that has just started counts the memory of the one that started it as its
own peak. So commands are started from here, where little more than Python is loaded.
"""

import json
import os
import sys
import tempfile
import time


def run(command: list[str], environment: dict[str, str], log: str) -> dict[str, float]:
    """Seconds and bytes of one run; ends this process if the command fails."""
    output = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, log, output, 0o600),
    ]
    start = time.perf_counter()
    child = os.posix_spawn(command[0], command, environment, file_actions=actions)
    _, status, used = os.wait4(child, 0)
    wall = time.perf_counter() - start
    if os.waitstatus_to_exitcode(status) != 0:
        with open(log, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            sys.exit(f"{' '.join(command)}\n{file.read()}")
    return {
        "cpu_s": used.ru_utime + used.ru_stime,
        "wall_s": wall,
        "peak_bytes": used.ru_maxrss * 1024,
    }


def main() -> None:
    """Answer the request on standard input with one list of runs per command."""
    request = json.load(sys.stdin)
    os.chdir(request["folder"])
    commands = request["commands"]
    runs: list[list[dict[str, float]]] = [[] for _ in commands]
    handle, log = tempfile.mkstemp(prefix="bench-")
    os.close(handle)
    try:
        for turn in range(request["repetitions"] + 1):
            for command, found in zip(commands, runs, strict=True):
                if command["before"]:
                    run(command["before"], request["environment"], log)
                cost = run(command["words"], request["environment"], log)
                if turn:  # the first one warms caches
                    found.append(cost)
    finally:
        os.unlink(log)  # noqa: PTH108
    json.dump(runs, sys.stdout)


main()
