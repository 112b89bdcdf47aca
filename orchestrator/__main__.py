"""Entry point: sees an unchanged build in milliseconds, else starts the real program.

Little more than what every Python process has loaded is imported here, because a build
that has nothing to do is the command that is run most.
"""

from __future__ import annotations

import sys

from orchestrator.cli.terminal import drop_output, open_standard_streams

NOBODY_READS = 141
"""Exit code when the reader of a pipe is gone, as of programs that SIGPIPE ends."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as of programs that SIGINT ends."""


def main() -> int:
    """Run the command line; the result is the exit code."""
    # Before anything else: a stream that the caller closed would give its descriptor to
    # the next file that is opened, and messages would go into that file
    # (tests/integration/test_streams.py).
    open_standard_streams()
    try:
        return _run(sys.argv[1:])
    # Python would print a traceback, and exit with 1: `orchestrator inspect x | head`
    # would fail in scripts with `set -o pipefail`.
    except BrokenPipeError:
        return NOBODY_READS
    except KeyboardInterrupt:  # while modules are loaded: later, commands say so
        return INTERRUPTED
    finally:
        drop_output()


def _run(arguments: list[str]) -> int:
    # Asked before anything else is imported: the rest of the program takes longer to
    # import than this takes to answer.
    if arguments[:1] == ["build"]:
        from orchestrator.cli.fastpath import unchanged_build  # noqa: PLC0415

        if unchanged_build(arguments[1:]):
            return 0
    from orchestrator.cli.main import run  # noqa: PLC0415
    from orchestrator.shell.signals import unwind_on_signals  # noqa: PLC0415

    # Not before an unchanged build, which writes nothing that a signal could leave half
    # done.
    unwind_on_signals()
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
