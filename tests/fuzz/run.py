"""Runs both fuzz targets for a number of executions, and reports what came of it.

    python -m tests.fuzz.run [--loader COUNT] [--reader COUNT] [--first SEED]
                             [--folder FOLDER]

The loader runs under libFuzzer with the seeds of `loader_seeds.py` and what earlier
runs found; its corpus and what breaks it stay in FOLDER (build/fuzz). The reader is
given seeds FIRST to FIRST + COUNT - 1, each of which is one damaged program; a seed
that breaks it is printed. The last lines are for docs/testing.md. Exits with 1 after a
finding.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path
from shutil import which
from typing import Final

from tests.cpp.support.native import ROOT, build
from tests.fuzz import loader_seeds
from tests.fuzz.damage import PROGRAMS, damaged, read_and_use

_MOST_REPORTED: Final = 10
_MAX_BYTES: Final = 12_000


def fuzz_loader(count: int, folder: Path, *, seed: int) -> tuple[str, bool]:
    """A line about a run of the loader, and whether it found nothing."""
    corpus, seeds = folder / "corpus", folder / "seeds"
    findings = folder / "findings"
    for made in (corpus, findings):
        made.mkdir(parents=True, exist_ok=True)
    loader_seeds.main(seeds)
    known = set(findings.iterdir())
    with (folder / "loader.log").open("w", encoding="utf-8") as log:
        status = subprocess.run(
            [
                *(build("fuzz_loader"), corpus, seeds),
                *(f"-seed={seed}", f"-runs={count}", f"-max_len={_MAX_BYTES}"),
                *("-timeout=60", "-report_slow_units=60", "-print_final_stats=1"),
                f"-artifact_prefix={findings}/",
            ],
            stdout=log,
            stderr=log,
            check=False,
        ).returncode
    text = (folder / "loader.log").read_text(encoding="utf-8", errors="replace")
    executions = re.findall(r"stat::number_of_executed_units:\s*(\d+)", text)
    progress = re.findall(r"^#(\d+)\s.* cov: (\d+) ft: (\d+) ", text, re.MULTILINE)
    done, edges, features = progress[-1] if progress else ("0", "0", "0")
    done = executions[-1] if executions else done
    found = sorted(path for path in findings.iterdir() if path not in known)
    line = (
        f"loader and executor: {int(done):,} executions, {int(edges):,} edges,"
        f" {int(features):,} features, {len(found)} findings"
    )
    line += "".join(f"\n  {path}" for path in found)
    if status != 0 and not found:
        line += f"\n  ended with {status}, see {folder / 'loader.log'}"
    return line, status == 0 and not found


def fuzz_reader(count: int, *, first: int) -> tuple[str, bool]:
    """A line about a run of the reader, and whether it found nothing."""
    accepted, found, slowest = 0, [], 0.0
    for seed in range(first, first + count):
        data = damaged(PROGRAMS, seed)
        begin = time.perf_counter()
        try:
            accepted += read_and_use(data)
        except Exception:  # noqa: BLE001  # whatever it is, it is a finding
            found.append(f"seed {seed}: {traceback.format_exc(limit=-1)}")
        slowest = max(slowest, time.perf_counter() - begin)
    line = (
        f"reader: {count:,} executions, {accepted:,} accepted, slowest"
        f" {1000 * slowest:.0f} ms, {len(found)} findings"
    )
    line += "".join(f"\n  {text}" for text in found[:_MOST_REPORTED])
    return line, not found


def _version() -> str:
    """What was fuzzed, as git describes it; "" without git."""
    git = which("git")
    if git is None:
        return ""
    words = [git, "describe", "--always", "--dirty"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """Run both; 0 if neither found anything."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz.run", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--loader", type=int, default=1_000_000, metavar="COUNT")
    parser.add_argument("--reader", type=int, default=100_000, metavar="COUNT")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args(arguments)
    version = _version()
    results = []
    if options.reader:
        results.append(fuzz_reader(options.reader, first=options.first))
    if options.loader:
        folder = options.folder.absolute()
        results.append(fuzz_loader(options.loader, folder, seed=options.first))
    sys.stdout.write(f"version {version or 'unknown'}\n")
    for line, _ in results:
        sys.stdout.write(f"{line}\n")
    return 0 if all(good for _, good in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
