"""The same bytes from two checkouts in different folders and environments."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.shell.publish import published_files
from tests.integration.workspace import MACHINE_FILES, copy_checkout, orchestrator
from tests.targets import EVERY_PAIR
from tests.tools import need_toolchain

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

PROFILE = Path("profiles/kws-m55.toml")
VARIANTS = {
    "zig": {},
    "gnu": {"toolchain": "gnu"},
    "zig-debug": {"optimize": "debug"},
    "gnu-debug": {"toolchain": "gnu", "optimize": "debug"},
    "host-zig": {"cpu": "host"},
}
if EVERY_PAIR:
    VARIANTS["host-gnu-debug"] = {"cpu": "host", "toolchain": "gnu", "optimize": "debug"}


@dataclass(frozen=True)
class Checkout:
    """A copy of the project, and the environment of whoever builds in it."""

    folder: Path
    environment: dict[str, str]
    umask: int

    def run(self, *arguments: str) -> str:
        before = os.umask(self.umask)
        try:
            done = orchestrator(*arguments, cwd=self.folder, env=self.environment)
        finally:
            os.umask(before)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def checkouts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Checkout, Checkout]:
    """Two checkouts that have as little as possible in common."""
    top = tmp_path_factory.mktemp("reproducible")
    folders = (top / "a", top / "some" / "much deeper folder" / "with $pecial näme")
    made = []
    for number, folder in enumerate(folders):
        copy_checkout(folder, "profiles", "examples")
        home = top / f"home{number}"
        home.mkdir()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": str(1 + number),
            "HOME": str(home),
            "USER": f"user{number}",
            "TZ": ("UTC", "Asia/Kathmandu")[number],
            "LANG": ("C", "C.UTF-8")[number],
            "TMPDIR": str(home),
        }
        made.append(Checkout(folder, environment, (0o022, 0o077)[number]))
    return made[0], made[1]


def _variant(checkout: Checkout, name: str) -> Path:
    """The profile with other settings, beside the one it was made of."""
    text = (checkout.folder / PROFILE).read_text()
    text = text.replace('name = "kws-m55"', f'name = "{name}"')
    for key, value in VARIANTS[name].items():
        text = re.sub(rf'^{key} = ".*"\n', "", text, flags=re.MULTILINE)
        text = text.replace("[target]\n", f'[target]\n{key} = "{value}"\n')
    path = PROFILE.with_name(f"{name}.toml")
    (checkout.folder / path).write_text(text)
    return path


def _objects(build: Path) -> dict[str, bytes]:
    work = build / ".work"
    return {
        path.relative_to(work).as_posix(): path.read_bytes()
        for path in sorted(work.rglob("*"))
        if path.suffix in (".o", ".a", ".elf", ".su", ".map")
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_two_checkouts_give_the_same_bytes(checkouts: tuple[Checkout, Checkout], name: str) -> None:
    settings = VARIANTS[name]
    need_toolchain(settings.get("cpu", "cortex-m55"), settings.get("toolchain", "zig"))
    objects, published, locks = [], [], []
    for checkout in checkouts:
        profile = _variant(checkout, name)
        checkout.run("build", str(profile))
        build = checkout.folder / "build" / name
        objects.append(_objects(build))
        published.append(published_files(build))
        locks.append((checkout.folder / profile).with_suffix(".lock").read_bytes())
    one, two = objects
    assert len(one) > 30
    assert {n for n in one if one[n] != two.get(n)} == set()
    assert set(one) == set(two)
    one, two = published
    assert {n for n in one if one[n] != two.get(n)} <= MACHINE_FILES
    assert set(one) == set(two)
    assert locks[0] == locks[1]
    everything = {**objects[0], **published[0], "lock": locks[0]}
    for checkout in checkouts:
        # The folder itself, and what would be left of it if a part were cut off.
        for part in (str(checkout.folder), checkout.folder.parts[-2] + "/"):
            found = {n for n, data in everything.items() if part.encode() in data}
            assert found <= MACHINE_FILES


@pytest.mark.parametrize("name", ["zig", "gnu-debug"])
def test_verify_builds_elsewhere_and_compares(
    checkouts: tuple[Checkout, Checkout], name: str
) -> None:
    settings = VARIANTS[name]
    need_toolchain("cortex-m55", settings.get("toolchain", "zig"))
    checkout = checkouts[1]
    said = checkout.run("verify", str(_variant(checkout, name)))
    assert re.fullmatch(rf"{name}: \d+ files are the same, byte for byte\n", said)


@pytest.mark.parametrize("name", ["zig", "zig-debug"])
def test_debug_information_names_the_sources(
    checkouts: tuple[Checkout, Checkout], name: str
) -> None:
    """It is there by default, and says where the copies of the sources are."""
    need_toolchain("cortex-m55", "zig")
    checkout = checkouts[0]
    checkout.run("build", str(_variant(checkout, name)))
    for file in ("firmware.elf", f"lib{name}.a"):
        made = (checkout.folder / "build" / name / file).read_bytes()
        assert b".debug_info" in made
        assert b"src/kernels/portable" in made
