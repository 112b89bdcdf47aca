"""A workspace of a thousand products against builds of each alone."""

from __future__ import annotations

import heapq
import json
import shlex
import shutil
import subprocess
import tempfile
import threading
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

from benchmarks.clock import Command, Cost, cost_of, environment, orchestrator
from benchmarks.fleet_products import write_fleet
from benchmarks.product import CORPUS
from benchmarks.table import Cell, Findings, Goal, NotMeasuredError, Table, short
from orchestrator.shell import stamp
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.stamp import Looked
from orchestrator.workspace.listing import read_listing
from orchestrator.workspace.product import in_shard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SHARDS = 60
"""One of so many parts of a fleet is built by one and by two workers."""
_ALONE = 12
"""Products of a fleet that are also built alone."""
_TWO_WORKERS = 1.75
_PLAIN = 0.97
_COPIES = 1000
_MOST_MS = 1.0
_MOST_TOUCHED_S = 2.0
_MOST_BYTES = 300 << 20
_COLD = {"uniform": ("*-cortex-m4", 6.0), "varied": ("v??2", 2.5)}
"""Products for one core, a tenth of the fleet, and how many times less all of them
take together: cores share no object."""
_PUBLISHED = 6.0
_CORES = 10
_WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TASK_S = 0.003
"""What Dask's scheduler takes for a task, one after the other: 2 to 4 ms."""


def measure(repetitions: int) -> Findings:
    """Seconds of cold builds, and of a thousand products with little to do."""
    findings = Findings()
    with tempfile.TemporaryDirectory() as name:
        for parts in (_cold, _processes, _many_workers, _checks, _unchanged):
            try:
                parts(findings, Path(name), repetitions)
            except NotMeasuredError as missing:
                findings.missing.append(f"{parts.__name__[1:]}: {missing}")
    return findings


def _cold(findings: Findings, folder: Path, repetitions: int) -> None:
    """Builds from nothing: one command for all, and one for each product."""
    rows: list[tuple[Cell, ...]] = []
    for kind, (pattern, limit) in _COLD.items():
        place = folder / kind
        write_fleet(place, varied=kind == "varied")
        listing = read_listing(place / "orchestrator.toml", Looked())
        names = [p.name for p in listing.products if fnmatchcase(p.name, pattern)]
        some = names[:: -(-len(names) // _ALONE)]
        store = place / "cache" / "objects"
        own = [str(which("env")), f"ORCHESTRATOR_CACHE={store.parent}"]
        alone = _all(
            [*own, "ORCHESTRATOR_OBJECTS=off", *orchestrator("-q", "build", name)] for name in some
        )
        whole = orchestrator("-q", "build", "-p", pattern)
        # Which also builds compilers' support functions, once per machine.
        _run([*own, *whole], place)
        published, public = _publish(own, place)
        empty = [str(which("rm")), "-rf", str(place / "build"), str(store)]
        with _served(published) as url:
            remote = [
                *(*own, f"ORCHESTRATOR_PUBLISHED={url}"),
                f"ORCHESTRATOR_PUBLISHED_KEY={public}",
            ]
            fetched, apart, together = cost_of(
                [
                    Command(words=[*remote, *whole], before=empty),
                    Command(words=alone, before=empty),
                    Command(words=[*own, *whole], before=empty),
                ],
                folder=place,
                repetitions=max(1, repetitions // 4),
            )
        each = together.cpu_s / len(names)
        each_fetched = fetched.cpu_s / len(names)
        each_alone = apart.cpu_s / len(some)
        compiled, shared = _compiled(place / "build"), _entries(store)
        rows.append(
            (
                f"{kind}, {len(names)} products",
                *(each_alone, each, each_alone / each),
                *(each_fetched, each_alone / each_fetched),
                *(compiled, shared, together.peak_bytes >> 20),
            )
        )
        findings.goals += [
            Goal(
                name=f"cold build of a {kind} fleet: alone : workspace",
                found=each_alone / each,
                limit=limit,
                at_most=False,
            ),
            Goal(
                name=f"the same of a {kind} fleet, whose objects are published",
                found=each_alone / each_fetched,
                limit=_PUBLISHED,
                at_most=False,
            ),
            Goal(
                name=f"objects of a {kind} fleet that were compiled twice",
                found=compiled - shared,
                limit=0,
                at_most=True,
            ),
        ]
    findings.tables.append(
        Table(
            title="Products of a fleet for one core, from nothing",
            columns=(
                *("fleet", "CPU s alone", "CPU s", "alone : workspace"),
                *("CPU s published", "alone : published"),
                *("compiled", "different", "MiB"),
            ),
            rows=tuple(rows),
            notes=(
                f"per product; alone: at most {_ALONE} of them",
                "published: with an empty store, and all objects at a URL",
                "objects that products can share; the memory is that of the largest process",
            ),
        )
    )


def _run(words: Sequence[str], folder: Path) -> None:
    """Run a command that is not measured.

    Raises:
        NotMeasuredError: It failed.
    """
    done = subprocess.run(
        words, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))


def _publish(own: Sequence[str], folder: Path) -> tuple[Path, Path]:
    """Publish the store in a folder; the result is that folder, and the public key."""
    private, public = folder / "ci.key", folder / "ci.pub"
    openssl = which("openssl")
    if openssl is None:
        raise NotMeasuredError("openssl is not installed")
    _run([openssl, "genpkey", "-algorithm", "ed25519", "-out", str(private)], folder)
    _run([openssl, "pkey", "-in", str(private), "-pubout", "-out", str(public)], folder)
    published = folder / "published"
    publish = ("cache", "publish", str(published), "--key", str(private))
    _run([*own, *orchestrator(*publish)], folder)
    return published, public


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """The URL of a folder, which this process serves."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


def _all(commands: Iterable[Sequence[str]]) -> list[str]:
    """One command that runs all of them."""
    text = " && ".join(shlex.join(command) for command in commands)
    return [str(which("sh")), "-c", text]


def _compiled(folder: Path) -> int:
    """How often ninja compiled a source that is not generated."""
    return sum(
        line.endswith(".o") and "obj/gen/" not in line
        for log in folder.glob("*/.work/.ninja_log")
        for line in (row.split("\t")[3] for row in log.read_text().splitlines()[1:])
    )


def _entries(store: Path) -> int:
    return ObjectStore(store).contents().entries


def _processes(findings: Findings, folder: Path, repetitions: int) -> None:
    """Two workers beside one, and beside two commands at a time."""
    place = folder / "uniform"
    listing = read_listing(place / "orchestrator.toml", Looked())
    shard = in_shard(listing.products, (1, _SHARDS))
    names = [product.name for product in shard]
    store = place / "cache"
    own = [*(str(which("env")), f"ORCHESTRATOR_CACHE={store}"), "ORCHESTRATOR_OBJECTS=off"]
    build = [*own, *orchestrator("-q", "build", "--shard", f"1/{_SHARDS}")]
    plain = shlex.join([*own, *orchestrator("-q", "build", "-j1")])
    text = f"printf '%s\\n' {shlex.join(names)} | xargs -n1 -P2 {plain}"
    empty = [str(which("rm")), "-rf", str(place / "build")]
    one, two, plain_two = cost_of(
        [
            Command(words=[*build, "-j1"], before=empty),
            Command(words=[*build, "-j2"], before=empty),
            Command(words=[str(which("sh")), "-c", text], before=empty),
        ],
        folder=place,
        repetitions=max(1, repetitions // 3),
    )
    findings.tables.append(
        Table(
            title=f"{len(names)} products without the store, by two processes",
            columns=("how", "wall s", "CPU s"),
            rows=(
                ("one worker", one.wall_s, one.cpu_s),
                ("two workers", two.wall_s, two.cpu_s),
                ("two commands at a time", plain_two.wall_s, plain_two.cpu_s),
            ),
        )
    )
    findings.goals += [
        Goal(
            name="two workers: speed of one",
            found=one.wall_s / two.wall_s,
            limit=_TWO_WORKERS,
            at_most=False,
        ),
        Goal(
            name="two workers: speed of two commands",
            found=plain_two.wall_s / two.wall_s,
            limit=_PLAIN,
            at_most=False,
        ),
    ]


def _many_workers(findings: Findings, folder: Path, repetitions: int) -> None:
    """A simulation of `--scheduler`: the whole fleet with times of one core's part."""
    del repetitions
    place = folder / "uniform"
    shutil.rmtree(place / "build", ignore_errors=True)
    shutil.rmtree(place / "cache", ignore_errors=True)
    done = subprocess.run(
        orchestrator("-q", "build", "--json", "-j1", "-p", _COLD["uniform"][0]),
        cwd=place,
        env={**environment(), "ORCHESTRATOR_CACHE": str(place / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    times = [one["seconds"] for one in json.loads(done.stdout)["products"]]
    alone = makespan(times * _CORES, 1)
    rows = []
    for workers in _WORKERS:
        seconds = makespan(times * _CORES, workers)
        rows.append((workers, seconds, alone / seconds, alone / seconds / workers))
    findings.tables.append(
        Table(
            title=f"{len(times) * _CORES} products from nothing, simulated",
            columns=("workers", "s", "times faster", "of which busy"),
            rows=tuple(rows),
            notes=(
                f"times recorded from {len(times)} products of one core, of which the"
                f" first compiles most: {max(times):.1f} s",
                f"the scheduler takes {_TASK_S * 1000:g} ms a task; file system and"
                " waits for objects of others are left out",
            ),
        )
    )


def makespan(times: Iterable[float], workers: int) -> float:
    """Seconds until all tasks are done, each by the worker that is free first."""
    free = [0.0] * workers
    for number, seconds in enumerate(times):
        begin = max(heapq.heappop(free), number * _TASK_S)
        heapq.heappush(free, begin + seconds)
    return max(free)


def _checks(findings: Findings, folder: Path, repetitions: int) -> None:
    """`check` of a tenth of the uniform fleet: all stages before the compiler."""
    del repetitions
    place = folder / "uniform"
    shard = in_shard(read_listing(place / "orchestrator.toml", Looked()).products, (1, 10))
    one, many = cost_of(
        [
            Command(words=orchestrator("-q", "check", shard[0].name)),
            Command(words=orchestrator("-q", "check", "--shard", "1/10")),
        ],
        folder=place,
        repetitions=1,
    )
    findings.tables.append(
        Table(
            title="check",
            columns=("products", "CPU ms each", "MiB"),
            rows=(
                (1, one.cpu_s * 1000, one.peak_bytes >> 20),
                (len(shard), many.cpu_s / len(shard) * 1000, many.peak_bytes >> 20),
            ),
        )
    )


def _unchanged(findings: Findings, folder: Path, repetitions: int) -> None:
    """A thousand products of which none, or one, changed since they were built."""
    place = folder / "copies"
    _write_copies(place)
    build = orchestrator("-q", "build")
    profile = place / "products" / "p000.toml"
    touch = [str(which("sh")), "-c", 'echo "#" >> "$0"', str(profile)]
    none, one = cost_of(
        [Command(words=build), Command(words=build, before=touch)],
        folder=place,
        repetitions=max(3, repetitions),
    )
    rows = [_row("nothing", none), _row("one profile", one)]
    findings.tables.append(
        Table(
            title=f"Builds of {_COPIES} products",
            columns=("what changed", "CPU s", "wall s", "ms each", "MiB"),
            rows=tuple(rows),
            notes=("copies of one product: their stamps are as if each was built",),
        )
    )
    findings.goals += [
        Goal(
            name="nothing to do, CPU ms per product",
            found=none.cpu_s / _COPIES * 1000,
            limit=_MOST_MS,
            at_most=True,
        ),
        Goal(
            name=f"one of {_COPIES} changed, s",
            found=one.wall_s,
            limit=_MOST_TOUCHED_S,
            at_most=True,
        ),
        Goal(
            name="memory of the command, MiB",
            found=max(none.peak_bytes, one.peak_bytes) >> 20,
            limit=_MOST_BYTES >> 20,
            at_most=True,
        ),
    ]


def _row(name: str, cost: Cost) -> tuple[Cell, ...]:
    each = cost.wall_s / _COPIES * 1000
    return (name, cost.cpu_s, cost.wall_s, each, cost.peak_bytes >> 20)


def _write_copies(folder: Path) -> None:
    """One product that is built, and copies of it that look built.

    Raises:
        NotMeasuredError: It cannot be built here.
    """
    (folder / "products").mkdir(parents=True)
    shutil.copyfile(CORPUS / "add_mul" / "model.pte", folder / "model.pte")
    (folder / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["products/*.toml"]\n'
    )
    names = [f"p{number:03}" for number in range(_COPIES)]
    for name in names:
        (folder / "products" / f"{name}.toml").write_text(
            f'schema = 1\nname = "{name}"\n[target]\ncpu = "cortex-m4"\n'
            '[[models]]\nname = "model"\npath = "../model.pte"\n'
        )
    done = subprocess.run(
        orchestrator("build", "-p", names[0]),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(short(done.stderr))
    for name in names[1:]:
        _copy(folder, names[0], name)


def _copy(folder: Path, built: str, name: str) -> None:
    build, products = folder / "build", folder / "products"
    shutil.copytree(
        build / built,
        build / name,
        symlinks=True,
        ignore=lambda path, _: [".work"] if Path(path) == build / built else [],
    )
    work = build / name / ".work"
    work.mkdir()
    shutil.copyfile(products / f"{built}.lock", products / f"{name}.lock")
    text = (build / built / ".work" / stamp.STAMP_NAME).read_text()
    document = json.loads(
        text.replace(f"build/{built}", f"build/{name}")
        .replace(f"products/{built}", f"products/{name}")
        .replace(f'"product": "{built}"', f'"product": "{name}"')
    )
    document["files"] = _states(document["files"])
    (work / stamp.STAMP_NAME).write_text(json.dumps(document))
    shared = Path(stamp.shared_file(stamp.STAMP_NAME))
    shutil.copyfile(build / built / ".work" / shared, work / shared)


def _states(paths: Sequence[str]) -> dict[str, stamp.State]:
    return {path: stamp.state_of(path) for path in paths}
