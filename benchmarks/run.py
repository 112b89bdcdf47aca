"""Starts the benchmarks: `python benchmarks/run.py --help`."""

import sys
from importlib import import_module
from pathlib import Path

# Benchmarks are not installed: they are found beside the package they measure.
sys.path[0] = str(Path(__file__).resolve().parent.parent)
sys.exit(import_module("benchmarks.main").main(sys.argv[1:]))
