"""What every package of a product has, whatever the build system."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.emit.compile import SOURCES, CompilePlan
from orchestrator.emit.compile.archive import defined_symbols
from orchestrator.emit.generate.names import hook_names
from orchestrator.emit.generate.nonsecure import FOLDER as NONSECURE
from orchestrator.emit.generate.target_check import target_check
from orchestrator.memory.plan import identifier
from orchestrator.package.case import Case
from orchestrator.package.rendering import rendered
from orchestrator.package.rust import RustMethod
from orchestrator.package.sources import (
    MODELS,
    RUNNER,
    Places,
    Unit,
    assembly_functions,
    common_defines,
    constants_source,
    library_units,
    packaged_sources,
    symbols_of,
    unit_of,
    with_own_symbols,
    with_sections,
)
from orchestrator.targets.cores import Target

# A piece of linker script that takes the functions of a package of sources.
#
# In a library the sections of functions are renamed. Compilers of a package cannot do that: gcc
# has no flag for it, and an attribute would give all functions of a source one section, which
# linkers keep or drop as a whole. But with `-ffunction-sections` each section has the name of its
# function, and all of these begin with the product's name or have its namespace. So the linker
# finds them wherever their objects are: in an archive, among those of the application, or made
# anew by `-flto`.

_MANGLED: Final = "_Z"


def code_script(
    head: str, base: str, section: str, *, api: Iterable[str], files: Iterable[str]
) -> str:
    """The text, for an output section of a linker script.

    Args:
        head: Text of the first line.
        base: Name of the product in C.
        section: What the profile calls the section.
        api: Functions in C without the product's namespace in their names.
        files: Sources whose functions may have any name; names without folder.
    """
    # A namespace is mangled with its length before it. `.text.*` also takes the parts
    # that compilers move away, `.text.unlikely.NAME`.
    namespace = f"{base}_orch"
    patterns = [
        f".text.*{len(namespace)}{namespace}*",
        f".text.{namespace}_* .text.*.{namespace}_*",
        *(f".text.{n} .text.*.{n} .text.{n}.* .text.*.{n}.*" for n in sorted(api)),
    ]
    lines = [f"*({pattern})" for pattern in patterns]
    # Sources of the user keep their names in C, so they are found by file.
    lines += [f"*{name}.*(.text .text.*)" for name in sorted(files)]
    return "".join(
        [
            f"/* {head} */\n",
            f"/* Functions of the product, for {section}: INCLUDE it in that section\n",
            " * of your linker script, before others take .text. The compiler needs\n",
            " * -ffunction-sections. */\n",
            *(f"{line}\n" for line in lines),
        ]
    )


def api_names(symbols: Iterable[str]) -> frozenset[str]:
    """Symbols of the library that are not of one product alone: see `own_symbols`."""
    return frozenset(name for name in symbols if "." not in name and not name.startswith(_MANGLED))


def user_files(units: Iterable[Unit], names: Iterable[str]) -> frozenset[str]:
    """Names of the sources of libraries and delegates of the user, without suffix."""
    folders = tuple(
        f"{SOURCES}/{kind}/{name}/" for kind in ("kernels", "delegates") for name in names
    )
    return frozenset(
        posixpath.splitext(posixpath.basename(unit.path))[0]
        for unit in units
        if unit.path.startswith(folders)
    )


FACTS: Final = "orchestrator"
"""Folder in a package with what tools of Orchestrator read."""
_MADE: Final = "gen/src/"
"""Folder of generated sources in the compile folder."""
_TRACE: Final = "ORCH_TRACE"
"""Off in the self test: times are no part of a case."""
_GLOBAL: Final = ("orch_random_next", "orch_random_seed")
"""Functions in C that are not for applications: not in the namespace."""
_COMPILED: Final = (".c", ".cc", ".cpp", ".cxx", ".S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes that a product takes, as the build measured them with its compiler.

    Args:
        flash: Models and code.
        models: Of these, models.
        ram: Static.
        stack: Deepest, of any method.
    """

    flash: int
    models: int
    ram: int
    stack: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A finished build, as far as packages are made of it.

    Args:
        name: Of the profile.
        generator: Name and version of what generates.
        version: Of the package.
        description: Of the profile; may be "".
        target: What it is built for.
        commands: How it is compiled.
        files: Sources and headers by path in the compile folder.
        models: Programs and constants by path.
        published: Headers by path in the build folder, with the library.
        facts: The lock and further facts for tools, by file name.
        licence: Text of Orchestrator's licence.
        case: For the self test; None if the firmware cannot be run here.
        typed_test: Header of the self test beside the library; "" if there is none.
        example: Functions of the example that call each method, in C.
        example_functions: Their names.
        rust_methods: Methods as functions of Rust.
        sizes: Of the product.
        user_code: Kernel libraries and delegates that are not Orchestrator's.
    """

    name: str
    generator: str
    version: str
    description: str
    target: Target
    commands: CompilePlan
    files: Mapping[str, bytes]
    models: Mapping[str, Bytes]
    published: Mapping[str, bytes]
    facts: Mapping[str, bytes]
    licence: bytes
    case: Case | None
    typed_test: str
    example: str
    example_functions: tuple[str, ...]
    rust_methods: tuple[RustMethod, ...]
    sizes: Sizes
    user_code: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product in the layout of one ecosystem.

    Args:
        built: The build.
        base: Its name as a C identifier: what names of functions begin with.
        digest: Of all `files`; does not depend on the ecosystem's build files.
        files: By path in the package: sources, headers, library, facts, licence.
        sources: Of these, what is compiled, in order; none beside a library.
        headers: Of these, what applications include, in order.
        headers_folder: Folder of headers for applications.
        sources_folder: Folder of everything else that is compiled.
        library: Path of the library; "" in a package of sources.
        code_script: Path of the piece of linker script that takes its functions; "" if
            the profile does not name their section, or the library does.
    """

    built: Built
    base: str
    digest: str
    files: Mapping[str, bytes]
    sources: tuple[str, ...]
    headers: tuple[str, ...]
    headers_folder: str
    sources_folder: str
    library: str
    code_script: str

    @property
    def has_self_test(self) -> bool:
        """Whether it can compare itself with the case."""
        if self.library:
            return bool(self.built.typed_test)
        return self.built.case is not None

    @property
    def compiles_self_test(self) -> bool:
        """Whether it has the self test as a source, not in a header."""
        return self.has_self_test and not self.library

    @property
    def name(self) -> str:
        """Name of the product."""
        return self.built.name

    @property
    def head(self) -> str:
        """First line of every generated file, without the marks of a comment."""
        return first_line(self.built)


def first_line(built: Built) -> str:
    """Generator and product."""
    return f"Generated by {built.generator} for profile {built.name}. Do not edit."


def product_of(built: Built, *, headers: str, sources: str, library: str = "") -> Product:
    """The product in a layout.

    Args:
        built: The build.
        headers: Folder of headers for applications.
        sources: Folder of sources; may be the same.
        library: Path of the library, for a package without sources.
    """
    base = identifier(built.name)
    header, test = f"{headers}/{built.name}.h", f"{headers}/{base}_self_test.h"
    files: dict[str, bytes] = {
        f"{headers}/{path.removeprefix('include/')}": data
        for path, data in built.published.items()
        if path.startswith("include/")
    }
    places = Places(
        headers=headers,
        sources=sources,
        public=frozenset(
            _in_compile_folder(path, built.name)
            for path in built.published
            if path.startswith("include/")
        ),
    )
    public = set(files)
    if library:
        files[library] = built.published[built.commands.library]
        if built.typed_test:
            files[test] = built.typed_test.encode()
            public.add(test)
    else:
        # The published header has stack figures; its check of the target holds for our
        # library only.
        published = files[header]
        files |= _sources(built, places, base)
        ours, theirs = (
            target_check(built.name, built.target, has_library=has_library).encode()
            for has_library in (True, False)
        )
        files[header] = published.replace(ours, theirs)
        if built.case is not None:
            text = rendered("self_test.h.j2", head=first_line(built), base=base, case=built.case)
            files[test] = text.encode()
            public.add(test)
    compiled = tuple(sorted(path for path in files if path.endswith(_COMPILED)))
    script = "" if library else _code_script(built, base)
    if script:
        files[f"{base}_code.ld"] = script.encode()
    # The application of the secure side compiles its own, with a flag of its own.
    files |= {p: d for p, d in built.files.items() if p.startswith(f"{NONSECURE}/")}
    files |= {f"{FACTS}/{name}": data for name, data in built.facts.items()}
    files["LICENSE"] = built.licence
    return Product(
        built=built,
        base=base,
        digest=_digest(files),
        files=files,
        sources=compiled,
        headers=tuple(sorted(public)),
        headers_folder=headers,
        sources_folder=sources,
        library=library,
        code_script=f"{base}_code.ld" if script else "",
    )


def _code_script(built: Built, base: str) -> str:
    section = built.commands.sections.get("code")
    if section is None:
        return ""
    return code_script(
        first_line(built),
        base,
        section,
        api=api_names(defined_symbols(built.published[built.commands.library])),
        files=user_files(library_units(built.commands.units), built.user_code),
    )


def _in_compile_folder(path: str, name: str) -> str:
    own = path.removeprefix("include/")
    return f"gen/include/{own}" if own == f"{name}.h" else f"src/runtime/include/{own}"


def _sources(built: Built, places: Places, base: str) -> dict[str, bytes]:
    """All sources, those of the self test included if there is a case."""
    head, top = first_line(built), f"{places.sources}/product"
    units = library_units(built.commands.units)
    compiled = {unit.path for unit in units}
    # Runtime and kernels are compiled for one product; a program may have several.
    own = {name: f"{base}_{name}" for name in _GLOBAL} | hook_names(built.name)
    common = (*common_defines(units), ("orch", f"{base}_orch"), *own.items())
    runner = next(unit_of(u) for u in built.commands.units if u.source == RUNNER)
    config = f"{places.sources}/{base}_config.h"
    # Headers that the build gives by `-include`: here each source includes them by the
    # header of the configuration.
    forced = sorted({path for unit in units for path in unit.forced})
    relative = [places.of(p).removeprefix(f"{places.sources}/") for p in forced]
    assembly = built.files[MODELS].decode()
    own_names = _own_names(assembly, base)
    sections = built.commands.sections

    def named(text: str) -> str:
        return own_names(with_sections(text, sections))

    code = {p for p in built.files if p in compiled or p.endswith(".h")}
    functions = assembly_functions(built.files[path].decode() for path in sorted(code))

    def own_text(path: str, data: bytes) -> bytes:
        if path.startswith(_MADE):
            return named(data.decode()).encode()
        if path in code:
            return with_own_symbols(data.decode(), base, functions).encode()
        return data

    files = packaged_sources(
        units if built.case is None else [*units, runner],
        {path: own_text(path, data) for path, data in built.files.items()},
        places,
        config=config,
        common=common,
    )
    # Another build system gives its own flags. What decides about the bits of results is not
    # left to them: it is in this header, or the header refuses to compile.
    text = rendered("config.h.j2", head=head, product=built.name, defines=common, includes=relative)
    files[config] = text.encode()
    if built.case is not None:
        up = "../" * (top.count("/") + 1)
        text = rendered(
            "self_test.cpp.j2",
            head=head,
            base=base,
            case=built.case,
            defines=[d for d in runner.defines if d not in common and d[0] != _TRACE],
            config=f"../{base}_config.h",
            runner="../runtime/runner.h",
            header=f"{up}{places.headers}/{base}_self_test.h",
        )
        files[f"{top}/self_test.cpp"] = text.encode()
    text = named(constants_source(head, assembly, built.models))
    files[f"{top}/models.c"] = text.encode()
    return files


def _own_names(assembly: str, base: str) -> Callable[[str], str]:
    """Renames the symbols of models, so that each product has its own."""
    symbols = symbols_of(assembly)
    if not symbols:
        return str
    pattern = re.compile(rf"\b(?:{'|'.join(symbols)})\b")
    return lambda text: pattern.sub(lambda match: f"{base}_{symbols[match[0]]}", text)


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    # Sorted by path, each with its digest: no two sets of files give the same text.
    for path, data in sorted(files.items()):
        digest.update(f"{path}\n{hashlib.sha256(data).hexdigest()}\n".encode())
    return digest.hexdigest()
