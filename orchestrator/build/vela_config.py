"""Check that a profile's configuration of Vela has the sections that it names.

Vela itself reports a missing section only after quantizing the model, in its log.
"""

from __future__ import annotations

from configparser import ConfigParser, Error
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan, did_you_mean
from orchestrator.profile.fields import shown
from orchestrator.profile.lowering import with_defaults

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.profile.models import ModelTable
    from orchestrator.profile.tables import Profile

_SECTIONS = {"system_config": "System_Config.", "memory_mode": "Memory_Mode."}


def check_vela_config(
    profile: Profile, model: ModelTable, read: Callable[[Path], bytes]
) -> None:
    """Read the file that a model names, if it names one.

    Args:
        profile: The profile; gives the lines for messages.
        model: One of its models.
        read: Reads a file; may raise `OSError`.

    Raises:
        ProfileError: The file is not a configuration, or lacks sections: all of them.
    """
    if model.source is None or not model.vela.config:
        return
    vela = with_defaults(model.vela, model.lowering)
    sections = _sections_of(vela.config, read)
    index = profile.models.index(model)
    problems = []
    for key, prefix in _SECTIONS.items():
        name = getattr(vela, key)
        known = [s.removeprefix(prefix) for s in sections if s.startswith(prefix)]
        if name and name not in known:
            problems.append(
                Diagnostic.of(
                    "bad-vela-config",
                    f"{vela.config} has no section {shown(prefix + name)}",
                    where=profile.span("models", index, "vela", key),
                    found=", ".join(known) or f"no {prefix[:-1]} at all",
                    hint=did_you_mean(name, known) or "name one of its sections",
                )
            )
    if problems:
        raise ProfileError(problems)


def _sections_of(file: str, read: Callable[[Path], bytes]) -> list[str]:
    parser = ConfigParser()
    try:
        parser.read_string(read(Path(file)).decode("utf-8"))
    except (Error, UnicodeDecodeError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise ProfileError.of(
            "bad-vela-config",
            "Vela cannot read its configuration",
            where=SourceSpan(file=file),
            found=first,
            hint="write it as Vela's own: [System_Config.NAME], then key=value",
        ) from error
    return parser.sections()
