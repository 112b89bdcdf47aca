"""The checked-in schema and page are current, and the schema agrees with the loader."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tomli

from orchestrator.errors import ProfileError
from orchestrator.profile.load import load_profile
from orchestrator.profile.reference import schema_text
from orchestrator.profile.table import keys_of
from orchestrator.profile.tables import tables
from orchestrator.targets.cores import BOARDS, CPUS
from tests.pages import PROFILE_EXAMPLE, profile_page
from tests.schemas import validator

ROOT = Path(__file__).parents[3]
SMALL = 'schema = 1\nname = "small"\ntarget.cpu = "host"\nmodels = [{path = "a.pte"}]\n'


def _loads(text: str) -> bool:
    try:
        load_profile(
            Path("profile.toml"),
            text_of=lambda _: text,
            is_file=lambda _: True,
            known_libraries=("portable",),
        )
    except ProfileError:
        return False
    return True


@pytest.mark.parametrize(
    ("file", "text"),
    [("schema/profile.schema.json", schema_text()), ("docs/profile.md", profile_page())],
)
def test_generated_file_is_current(file: str, text: str, request: pytest.FixtureRequest) -> None:
    path = ROOT / file
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_schema_is_one() -> None:
    assert "2020-12" in json.loads(schema_text())["$schema"]
    assert validator(schema_text())
    assert "null" not in schema_text()


M4 = SMALL.replace("host", "cortex-m4")


@pytest.mark.parametrize(
    "text",
    [
        PROFILE_EXAMPLE,
        SMALL,
        M4 + "[memory]\n",
        M4 + '[[memory.regions]]\nname = "sram"\nsize = "1 KiB"\n',
        M4.replace('path = "a.pte"', 'path = "a.pte", regions = {1 = "sram"}'),
        M4.replace('path = "a.pte"', 'path = "a.pte", region = "psram"'),
        SMALL + 'target.optimize = "debug"\nkernels.libraries = ["portable"]\n',
        SMALL + 'description = "one line"\n',
        SMALL.replace("a.pte", "/m/a.pte"),
        *(SMALL.replace("host", cpu) for cpu in CPUS),
        *(SMALL.replace("host", b.cpu) + f'target.board = "{b.name}"\n' for b in BOARDS.values()),
    ],
)
def test_good_profiles(text: str) -> None:
    assert _loads(text)
    validator(schema_text()).validate(tomli.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        SMALL.replace("schema = 1", "schema = 2"),
        SMALL.replace("schema = 1", 'schema = "1"'),
        SMALL.replace("small", "Small"),
        SMALL.replace('name = "small"', ""),
        SMALL.replace('target.cpu = "host"', ""),
        SMALL.replace('target.cpu = "host"', "target = {}"),
        SMALL.replace("host", "z80"),
        SMALL.replace('models = [{path = "a.pte"}]', ""),
        SMALL + 'operators.include_yaml = ["/a.yaml"]\n',
        SMALL.replace("a.pte", "b\\\\a.pte"),
        SMALL.replace('path = "a.pte"', ""),
        SMALL + 'target.isa = "mve"\n',
        SMALL + 'target.board = "mps3-an547"\n',
        SMALL.replace("host", "cortex-m4") + 'target.board = "mps3-an547"\n',
        SMALL + 'target.toolchain = "gcc"\n',
        M4 + '[[memory.regions]]\nname = "sram"\n',
        M4 + '[[memory.regions]]\nname = "sram"\nsize = 4\n',
        M4 + '[[memory.regions]]\nname = "sram"\nsize = "1 KiB"\nkind = "rom"\n',
        M4 + '[[memory.regions]]\nname = "x"\nsize = "1 KiB"\norigin = 0x100000000\n',
        M4 + '[[memory.regions]]\nname = "x"\nsize = "1 KiB"\norigin = -1\n',
        M4.replace('path = "a.pte"', 'path = "a.pte", regions = {0 = "sram"}'),
        M4.replace('path = "a.pte"', 'path = "a.pte", regions = {}'),
        SMALL + "[memories]\n",
        SMALL + "budget.flash = 96\n",
        SMALL + 'budget.flash = "96 KB"\n',
        SMALL + 'operators.include = ["a::"]\n',
        SMALL + 'operators.all = "true"\n',
        SMALL + "kernels.libraries = []\n",
        SMALL + 'kernels.libraries = ["portable", "portable"]\n',
        SMALL + 'dtypes.operators."aten::add.out" = ["Flaot"]\n',
        SMALL + 'dtypes.operators."aten::add.out" = []\n',
        SMALL + 'dtypes.operators."aten:add" = ["Float"]\n',
    ],
)
def test_bad_profiles(text: str) -> None:
    assert not _loads(text)
    assert not validator(schema_text()).is_valid(tomli.loads(text))


def test_what_the_base_may_have_is_not_asked_for() -> None:
    text = 'name = "a"\nextends = "b.toml"\ntarget.optimize = "speed"\n'
    validator(schema_text()).validate(tomli.loads(text))


def test_page_has_every_key_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", profile_page(), re.MULTILINE)
    keys = [
        key
        for table, model in tables().items()
        for key in keys_of(model).values()
        if (*table, key) not in tables()
    ]
    assert rows == keys


def test_every_key_has_a_description_and_an_example() -> None:
    for table, model in tables().items():
        for name, key in keys_of(model).items():
            field = model.model_fields[name]
            assert field.description, (table, key)
            assert field.examples or (*table, key) in tables(), (table, key)
