"""Records the C++ symbols of a firmware, and what `c++filt -p` of binutils says.

Each line of symbols.txt.gz is a symbol, a tab, and the name without parameters. It was
made from a product with every operator for Cortex-M4, built with GNU's compilers; run
it from the top of the repository:
`python -m tests.data.measure.make_symbols BUILD/firmware.elf`.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

from orchestrator.measure.elf import read_firmware


def main() -> None:
    """Write the symbols of the firmware named on the command line."""
    symbols = read_firmware(Path(sys.argv[1]).read_bytes()).symbols
    names = sorted({s.name for s in symbols if s.name.startswith("_Z")})
    plain = subprocess.run(
        ["/usr/bin/c++filt", "-p"],
        input="".join(f"{name.partition('.')[0]}\n" for name in names),
        capture_output=True,
        check=True,
        text=True,
    ).stdout.splitlines()
    text = "".join(f"{a}\t{b}\n" for a, b in zip(names, plain, strict=True))
    data = gzip.compress(text.encode(), 9, mtime=0)
    Path(__file__).with_name("symbols.txt.gz").write_bytes(data)


if __name__ == "__main__":
    main()
