"""Largest errors of the runtime's math functions.

`python -m tests.ulps [--step N] [function ...]` compiles `ulps.cpp` and prints a line
per function: the largest error in units in the last place, and where. `--step 1` takes
every float: about a minute per function on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Compile the program, and run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.ulps")
    parser.add_argument("--step", type=int, default=97)
    parser.add_argument("functions", nargs="*")
    args = parser.parse_args()
    program = _ROOT / "build" / "ulps"
    program.parent.mkdir(exist_ok=True)
    sources = [_ROOT / "runtime" / "src" / f"math{s}.cpp" for s in ("", "_double")]
    flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-pthread"]
    flags.append(f"-I{_ROOT / 'runtime' / 'include'}")
    sources.insert(0, Path(__file__).with_name("ulps.cpp"))
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *flags, *sources, "-o", program], check=True)
    subprocess.run([program, str(args.step), *args.functions], check=True)


if __name__ == "__main__":
    main()
