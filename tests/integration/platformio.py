"""PlatformIO as tests use it: without a network."""

from __future__ import annotations

import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.packages import need, tool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class PlatformIO:
    """PlatformIO without its registry: SCons of PyPI, a stand-in for a platform."""

    folder: Path
    program: str

    @property
    def env(self) -> dict[str, str]:
        """Its own folder for packages."""
        return {"PLATFORMIO_CORE_DIR": str(self.folder / "pio")}

    def python(self, text: str, *arguments: object) -> str:
        """What a program in its own interpreter prints."""
        first = Path(self.program).resolve().read_text().partition("\n")[0]
        command = (first.removeprefix("#!"), "-c", text, *arguments)
        return need(tool(*command, cwd=self.folder, env=self.env))

    def pack(self, package: Path) -> set[str]:
        """Names in the archive of a library."""
        # Its check of licences fetches a list of them.
        offline = (
            "from platformio.package.manifest import schema\n"
            "schema.load_spdx_licenses = None\n"
            "schema.ManifestSchema.load_spdx_licenses = staticmethod(\n"
            '    lambda: {"licenses": [{"licenseId": "Apache-2.0"}]})\n'
            "from platformio.__main__ import main\n"
            "main()\n"
        )
        packed = self.folder / "kws.tar.gz"
        self.python(offline, "pkg", "pack", package, "-o", packed)
        with tarfile.open(packed) as archive:
            return set(archive.getnames())

    def build(
        self, package: Path, source: Path, tools: Mapping[str, str], **flags: Iterable[str]
    ) -> Path:
        """The program of a project with a library, made with these tools and flags."""
        wanted = (
            "from platformio.dependencies import get_core_dependencies\n"
            'print(get_core_dependencies()["tool-scons"].lstrip("~"))\n'
        )
        version = f'"name": "tool-scons", "version": "{self.python(wanted).strip()}"'
        scons = "pio/packages/tool-scons"
        files = {
            "project/platformio.ini": "[env:one]\n"
            f"platform = symlink://{self.folder}/platform\n"
            "build_unflags = -std=gnu++11 -std=gnu++14\n"
            "build_flags = -std=gnu++17\n",
            "platform/platform.json": '{"name": "one", "version": "1.0.0",'
            ' "title": "one", "description": "-"}',
            "platform/platform.py": "from platformio.platform import base\n"
            "class OnePlatform(base.PlatformBase):\n    pass\n",
            "platform/builder/main.py": "from SCons.Script import DefaultEnvironment\n"
            f"env = DefaultEnvironment()\nenv.Replace(**{tools!r})\n"
            f"env.Append(**{flags!r})\n"
            "env.Default(env.BuildProgram())\n",
            f"{scons}/package.json": f"{{{version}}}",
            f"{scons}/.piopm": f'{{"type": "tool", {version}, "spec": {{"id": null,'
            ' "owner": "platformio", "name": "tool-scons", "requirements": null,'
            ' "uri": null}}',
            f"{scons}/scons.py": "from SCons.Script import main\nmain()\n",
        }
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)
        project = self.folder / "project"
        (project / "src").mkdir()
        shutil.copy(source, project / "src")
        shutil.copytree(package, project / "lib" / "kws")
        need(tool(self.program, "run", "-d", project, cwd=self.folder, env=self.env))
        return project / ".pio" / "build" / "one" / "program"
