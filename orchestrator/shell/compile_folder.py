"""The folder where a product is compiled, and the ninja that does it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.shell.files import remove_others, write_if_changed
from orchestrator.shell.launcher import Launcher
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.reporter import Reporter
from orchestrator.targets.cores import TOOLCHAIN_FILE


class CompileFolder(Protocol):
    """Compiles the files that are laid out in it."""

    def compile(
        self, files: Mapping[str, Bytes], *, whole: Iterable[str], keys: Mapping[str, str]
    ) -> str:
        """Write files and run ninja on `build.ninja`, which is one of them.

        Args:
            files: Bytes by POSIX path relative to the folder.
            whole: Folders in it from which all other files are removed.
            keys: By path of an object: where equal, so are the bytes.

        Returns:
            Output of ninja and the compilers, warnings included.

        Raises:
            CompileError: A step failed.
            MemoryPlanError: A memory of the board overflowed at link time.
        """

    def read(self, name: str) -> bytes:
        """Bytes of a file in the folder. Raises OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NinjaFolder:
    """A folder of this machine.

    Args:
        path: Where it is.
        jobs: Steps at a time; None lets ninja choose.
        reporter: Gets every step.
        folder_lock: Descriptor of the lock on the build folder, see `run_ninja`.
        launcher: Starts the compiler; None for none.
        store: Has objects of other products; None for none.
        at_once: Objects of the store that are compiled before other processes can have
            more of them; None for all.
    """

    path: Path
    jobs: int | None
    reporter: Reporter
    folder_lock: int
    launcher: Launcher | None = None
    store: ObjectStore | None = None
    at_once: int | None = None

    def compile(
        self, files: Mapping[str, Bytes], *, whole: Iterable[str], keys: Mapping[str, str]
    ) -> str:
        """See `CompileFolder`; a file that keeps its bytes keeps its time.

        Sources are copied: the lock names the bytes that are compiled, and the copies'
        times say when these bytes changed; times in a checkout do not.
        """
        text = bytes(files["build.ninja"]).decode()
        environment = {}
        if self.launcher is not None:
            text = self.launcher.ninja_text(text)
            environment = self.launcher.environment(bytes(files[TOOLCHAIN_FILE]))
        paths = {self.path / name: data for name, data in files.items()}
        for path, data in paths.items():
            # `_Ninja` writes it, without the steps whose objects come from the store.
            if path.name != "build.ninja":
                write_if_changed(path, data)
        for folder in whole:
            # The compiler would still find a header of an earlier build.
            remove_others(self.path / folder, keep=paths)
        run = _Ninja(self, text, environment)
        if self.store is None:
            run(restored=frozenset())
        else:
            self._compile_once(run, keys, self.store)
        return run.log

    def _compile_once(self, run: _Ninja, keys: Mapping[str, str], store: ObjectStore) -> None:
        """Compile what the store does not have and no other process is compiling."""
        # One request for all objects that are unknown here: a place on the network
        # answers each in its own time.
        store.bring(keys.values())
        restored = set(self._restored(keys, store))
        left = {name: key for name, key in keys.items() if name not in restored}
        with store.claims() as claims:
            # Claims are taken without waiting, and a process that waits has released
            # its own: two processes that want each other's objects cannot block each
            # other (decision 0035).
            while True:
                # Not all at once in a workspace: the second process would find nothing
                # to do until the first one has linked. Eight at a time are from
                # decision 0035.
                claimed = claims.take(left.values(), self.at_once)
                if left and not claimed:
                    claimed = claims.wait(next(iter(left.values())))
                mine = {name: key for name, key in left.items() if key in claimed}
                # Another process may have made it since we looked.
                restored |= self._restored(mine, store)
                made = mine.keys() - restored
                taken = self._through_storage(run, made, keys, store, restored)
                restored |= taken
                made -= taken
                is_last = len(mine) == len(left)
                # Linking is part of the last run, as it needs every object.
                if made or is_last:
                    run(restored=restored, only=() if is_last else sorted(made))
                # A warning would be seen once, and never again.
                for name in made - _with_warnings(run.log):
                    self._keep(keys[name], name, store)
                claims.release()
                if is_last:
                    return
                left = {n: key for n, key in left.items() if n not in mine}

    def _through_storage(
        self,
        run: _Ninja,
        made: Collection[str],
        keys: Mapping[str, str],
        store: ObjectStore,
        restored: Collection[str],
    ) -> set[str]:
        """Objects from ccache's remote storage, which gets those that are not listed.

        Anyone with write access can swap its entries, so an object is taken only if
        the signed list has its digest. It then counts as one of the store: the entry's
        warnings and headers are ignored.
        """
        launcher, published = self.launcher, store.published
        if launcher is None or not launcher.storage or published is None:
            return set()
        listed = published.listed()
        asked = {name: listed[keys[name]] for name in made if keys[name] in listed}
        found = set[str]()
        if asked:
            log = run.log
            run(restored=restored, unproven=sorted(asked), more=launcher.taking())
            # Warnings of objects that may not be used are not the user's.
            run.log = log
            for name, digests in asked.items():
                outputs = self._outputs(name)
                own = {s: hashlib.sha256(d).hexdigest() for s, d in outputs.items()}
                # By the signed list and nothing else: ccache's own checks trust whoever
                # wrote the entry.
                if own == digests:
                    store.put(keys[name], outputs)
                    found.add(name)
        others = sorted(set(made) - found)
        giving = launcher.giving()
        if others and giving:
            run(restored={*restored, *found}, only=others, more=giving)
        return found

    def _restored(self, keys: Mapping[str, str], store: ObjectStore) -> frozenset[str]:
        """Objects that now are what the store has."""
        found = set()
        for name, key in keys.items():
            outputs = store.get(key)
            if outputs is not None and ".o" in outputs:
                for suffix, data in outputs.items():
                    write_if_changed(self._output(name, suffix), data)
                found.add(name)
        return frozenset(found)

    def forget_others(self, restored: Collection[str]) -> None:
        """Remove objects that an earlier run took from elsewhere, and this one did not.

        ninja did not make them, so it does not know what they are made of.
        """
        file = self.path / "restored.json"
        with suppress(OSError, ValueError, TypeError):
            for name in json.loads(file.read_bytes()):
                if name not in restored:
                    self._output(name, ".o").unlink(missing_ok=True)
        write_if_changed(file, json.dumps(sorted(restored)).encode())

    def _keep(self, key: str, name: str, store: ObjectStore) -> None:
        outputs = self._outputs(name)
        if ".o" in outputs:
            store.put(key, outputs)

    def _outputs(self, name: str) -> dict[str, bytes]:
        """What a step gave: bytes by suffix."""
        outputs = {}
        # `.su` has the frame sizes that -fstack-usage writes beside an object: without
        # it the worst stack of the product would be unknown.
        for suffix in (".o", ".su"):
            with suppress(OSError):
                outputs[suffix] = self._output(name, suffix).read_bytes()
        return outputs

    def _output(self, name: str, suffix: str) -> Path:
        return self.path / (name.removesuffix(".o") + suffix)

    def read(self, name: str) -> bytes:
        """See `CompileFolder`."""
        return (self.path / name).read_bytes()


class _Ninja:
    """Runs ninja, once or in several parts.

    Args:
        folder: Where.
        text: Of `build.ninja`, with all steps.
        environment: Variables for the compilers.
    """

    def __init__(self, folder: NinjaFolder, text: str, environment: Mapping[str, str]) -> None:
        self.log = ""
        self._folder = folder
        self._text = text
        self._environment = environment

    def __call__(
        self,
        *,
        restored: Collection[str],
        only: Iterable[str] = (),
        unproven: Collection[str] = (),
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Make some objects, or everything.

        Args:
            restored: Objects that are not made: the store had them.
            only: Objects to make; nothing for everything.
            unproven: Objects to make that are not used unless a later run has them as
                restored, even if this process is killed in between.
            more: Variables for the compilers.
        """
        from orchestrator.shell import ninja  # noqa: PLC0415  # only real builds

        folder = self._folder
        # With the step in it ninja would compile the object again: its log knows no run
        # that made it.
        text = _without_steps(self._text, restored)
        write_if_changed(folder.path / "build.ninja", text.encode())
        # Before ninja starts: if this process is killed after that, the next build
        # removes what nobody compared with the list
        # (tests/integration/test_remote_storage.py).
        folder.forget_others({*restored, *unproven})
        self.log += ninja.run_ninja(
            folder.path,
            jobs=folder.jobs,
            reporter=folder.reporter,
            folder_lock=folder.folder_lock,
            environment={**self._environment, **more},
            targets=(*only, *unproven),
        )


# The form of NINJA_STATUS in ninja.py and of the descriptions in emit/compile/units.py:
# `[3/40] compile src/kernels/...`.
_STEP: Final = re.compile(r"\[\d+/\d+\] \w+ (?:src/)?(.*)")


def _with_warnings(log: str) -> frozenset[str]:
    """Objects whose compile step wrote something: ninja writes it below the step."""
    found, source = set(), ""
    for line in log.splitlines():
        if match := _STEP.fullmatch(line):
            source = match[1]
        else:
            found.add(f"obj/{source}.o")
    return frozenset(found)


def _without_steps(text: str, objects: Collection[str]) -> str:
    """Text of a ninja file without the steps that make some objects."""
    if not objects:
        return text
    kept, is_kept = [], True
    for line in text.splitlines(keepends=True):
        if not line.startswith(" "):
            made = line.removeprefix("build ").partition(": ")[0]
            is_kept = not line.startswith("build ") or made not in objects
        if is_kept:
            kept.append(line)
    return "".join(kept)
