"""Profile text to `Profile`: parse, merge, validate, report everything at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.planner.policy import Planner, RuntimeCheck, ScratchPolicy
from orchestrator.profile.check_libraries import (
    IMPLICIT,
    default_libraries,
    default_name,
)
from orchestrator.profile.checked import (
    Budget,
    CustomLibrary,
    DelegateEntry,
    DtypeRequest,
    DtypeRequests,
    DtypeSelect,
    Integrity,
    KernelChoice,
    Load,
    Memory,
    ModelEntry,
    ModelSource,
    NamedFile,
    OperatorRequests,
    Optimize,
    Overlap,
    Prelink,
    Profile,
    Registry,
    Scratch,
    TargetChoice,
    Trace,
)
from orchestrator.profile.checks import check
from orchestrator.profile.document import Document, read_document
from orchestrator.profile.explain import explain
from orchestrator.profile.fields import is_relative_path, parse_size
from orchestrator.profile.integrity import CheckImage
from orchestrator.profile.lowering import (
    NO_VELA,
    PORTABLE,
    Activations,
    Quantize,
    Vela,
    Weights,
)
from orchestrator.profile.model import (
    SCHEMA_VERSION,
    CustomTable,
    KernelsTable,
    ProfileTable,
)
from orchestrator.profile.source_fields import split_callable
from orchestrator.targets.cores import CPUS
from orchestrator.targets.regions import (
    Concurrency,
    Pins,
    RegionChoice,
    TensorKind,
    TensorPin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from orchestrator.profile.delegates import DelegateTable
    from orchestrator.profile.model_tables import ModelTable, VelaTable
    from orchestrator.profile.region_tables import MemoryTable, TensorTable


def load_profile(
    path: Path,
    *,
    text_of: Callable[[Path], str],
    is_file: Callable[[Path], bool],
    known_libraries: Collection[str],
) -> Profile:
    """Read a profile and its base, and check everything in them.

    Args:
        path: Of the profile, as the user named it.
        text_of: Gives a file's text; raises `OSError` or `UnicodeDecodeError`.
        is_file: Whether a path is a file, asked for every file the profile names;
            may raise `OSError`.
        known_libraries: Names of the kernel libraries that exist.

    Raises:
        ProfileError: With every problem, in the order of the file.
    """
    document = read_document(path, text_of=text_of)
    problems: list[Diagnostic] = []
    files = [path]
    base_path = _base_path(document)
    lacks_base = False
    if base_path is not None:
        files.append(base_path)
        try:
            document = document.over(_read_base(document, base_path, text_of))
        except ProfileError as error:
            problems += error.diagnostics
            lacks_base = True
    table = None
    try:
        table = ProfileTable.model_validate(document.data)
    except ValidationError as error:
        problems += explain(error.errors(include_url=False), document)
    problems += check(document, known_libraries=known_libraries, is_file=is_file)
    if lacks_base:  # what seems to be missing may be in the base
        problems = [p for p in problems if p.code not in _ABSENCES]
    if problems or table is None:
        raise ProfileError(_in_order(problems, path))
    return _checked(table, document, tuple(files), known_libraries)


_ABSENCES = frozenset({"missing-key", "nothing-selected"})


def _in_order(problems: list[Diagnostic], path: Path) -> list[Diagnostic]:
    """By place, what is wrong in the profile itself before its base."""

    def place(problem: Diagnostic) -> tuple[bool, int, str]:
        where = problem.where or SourceSpan(file="")
        return where.file != str(path), where.line, problem.message

    return sorted(problems, key=place)


def _base_path(document: Document) -> Path | None:
    extends = document.data.get("extends")
    if isinstance(extends, str) and is_relative_path(extends):
        return document.path.parent / extends
    return None  # none, or one that the validator reports


def _read_base(
    document: Document, base_path: Path, text_of: Callable[[Path], str]
) -> Document:
    """The base of a profile.

    Raises:
        ProfileError: It cannot be read, has a base itself, or is of another schema.
    """
    named_by = document.span("extends")
    if base_path == document.path:
        raise ProfileError(
            Diagnostic(
                code="bad-extends",
                message="the profile extends itself",
                where=named_by,
                notes=(("expected", "another profile"),),
                hint="name the base, or remove extends",
            )
        )
    base = read_document(base_path, text_of=text_of, named_by=named_by)
    problems = []
    if "extends" in base.data:
        problems.append(
            Diagnostic(
                code="bad-extends",
                message="the base extends another profile",
                where=base.span("extends"),
                notes=(
                    ("found", f"{document.path} extends {base_path} ({named_by})"),
                    ("expected", "one base at most"),
                ),
                hint="extend the last base directly, and repeat what is between",
            )
        )
    version = base.data.get("schema", SCHEMA_VERSION)
    if "schema" in document.data and version != SCHEMA_VERSION:
        # The profile's own schema hides the base's from validation.
        problems.append(
            Diagnostic(
                code="unknown-schema",
                message="the base has another schema",
                where=base.span("schema"),
                notes=(("found", f"schema = {version}"), ("expected", "1")),
                hint=f"write schema = {SCHEMA_VERSION}",
            )
        )
    if problems:
        raise ProfileError(problems)
    return base


def _checked(
    table: ProfileTable,
    document: Document,
    files: tuple[Path, ...],
    known_libraries: Collection[str],
) -> Profile:
    cpu = CPUS[table.target.cpu]
    is_host = cpu.default_board is None
    return Profile(
        file=document.path,
        files=files,
        name=table.name,
        description=table.description,
        target=TargetChoice(
            cpu=cpu.name,
            isa=table.target.isa or cpu.default_isa,
            board=table.target.board or cpu.default_board,
            toolchain=table.target.toolchain
            or (None if is_host else cpu.toolchains[0]),
            optimize=Optimize(table.target.optimize),
            unaligned=table.target.unaligned is not False,
        ),
        models=tuple(_model(m, document.folder("models")) for m in table.models),
        operators=OperatorRequests(
            include=tuple(
                sorted(set(map(OperatorName.parse, table.operators.include)))
            ),
            include_yaml=tuple(
                _named(document.folder("operators", "include_yaml"), text)
                for text in table.operators.include_yaml
            ),
            every=table.operators.all,
            overlap=Overlap(table.operators.overlap),
            allow_missing=tuple(sorted(set(table.operators.allow_missing))),
        ),
        dtypes=DtypeRequests(
            select=DtypeSelect(table.dtypes.select),
            operators=_dtype_requests(table.dtypes.operators),
            compare=table.dtypes.compare,
        ),
        kernels=_kernel_choice(table.kernels, document, known_libraries),
        delegates=tuple(
            _delegate(t, document.folder("delegates")) for t in table.delegates
        ),
        prelink=Prelink(skip=tuple(sorted(set(table.prelink.skip)))),
        scratch=Scratch(
            policy=ScratchPolicy(table.scratch.policy),
            runtime_check=RuntimeCheck(table.scratch.runtime_check),
        ),
        memory=_memory(table.memory),
        registry=Registry(max_kernels=table.registry.max_kernels),
        trace=Trace(enable=table.trace.enable),
        integrity=Integrity(check=CheckImage(table.integrity.check)),
        budget=Budget(
            flash_bytes=parse_size(table.budget.flash or ""),
            ram_bytes=parse_size(table.budget.ram or ""),
        ),
        spans=tuple(document.spans.items()),
    )


def _model(table: ModelTable, folder: Path) -> ModelEntry:
    written, function = table.path or "", ""
    if table.source is not None:
        written, function = split_callable(table.source)
    path = folder / written
    return ModelEntry(
        name=table.name or path.stem,
        path=path,
        written=written,
        source=_source(table, function, folder) if function else None,
        load=Load(table.load),
        max_instructions=table.max_instructions,
        data=tuple(_named(folder, text) for text in table.data),
        pins=Pins(
            every=table.region,
            by_id=tuple(sorted((int(i), r) for i, r in (table.regions or {}).items())),
            tensors=tuple(map(_tensor_pin, table.tensors)),
        ),
    )


def _source(table: ModelTable, function: str, folder: Path) -> ModelSource:
    found = table.quantize
    quantize = None
    if found is not None:
        quantize = Quantize(
            activations=Activations(found.activations),
            weights=Weights(found.weights),
            dynamic=found.dynamic,
        )
    return ModelSource(
        function=function,
        lowering=table.lowering or PORTABLE,
        quantize=quantize,
        vela=_vela(table.vela, folder),
        reads=tuple(_named(folder, text) for text in table.reads),
    )


def _vela(table: VelaTable | None, folder: Path) -> Vela:
    if table is None:
        return NO_VELA
    return Vela(
        system_config=table.system_config or "",
        memory_mode=table.memory_mode or "",
        config="" if table.config is None else (folder / table.config).as_posix(),
        flags=table.flags,
    )


def _tensor_pin(table: TensorTable) -> TensorPin:
    kind, index = table.tensor.split()
    return TensorPin(
        kind=TensorKind(kind),
        index=int(index),
        method=table.method,
        region=table.region,
    )


def _memory(table: MemoryTable) -> Memory:
    return Memory(
        concurrency=Concurrency(table.concurrency),
        regions=tuple(
            RegionChoice(
                name=region.name,
                size_bytes=parse_size(region.size) or 0,
                origin=region.origin,
                kind=region.kind,
            )
            for region in table.regions
        ),
        planner=Planner(table.planner),
    )


def _named(folder: Path, text: str) -> NamedFile:
    return NamedFile(path=folder / text, written=text)


def _kernel_choice(
    table: KernelsTable, document: Document, known_libraries: Collection[str]
) -> KernelChoice:
    folder = document.folder("kernels", "custom")
    custom = tuple(_custom(t, folder) for t in table.custom)
    named = table.libraries or default_libraries(document)
    implicit = [name for name in IMPLICIT if name in known_libraries]
    return KernelChoice(
        libraries=(
            *(c.name for c in custom if c.name not in named),
            *named,
            *(name for name in implicit if name not in named),
        ),
        custom=custom,
        operators=tuple(
            sorted(
                (OperatorName.parse(o), names) for o, names in table.operators.items()
            )
        ),
    )


def _custom(table: CustomTable, folder: Path) -> CustomLibrary:
    return CustomLibrary(
        name=table.name or default_name(table.functions),
        functions=_named(folder, table.functions),
        sources=tuple(_named(folder, text) for text in table.sources),
        include=tuple(_named(folder, text) for text in table.include),
        defines=table.defines,
    )


def _delegate(table: DelegateTable, folder: Path) -> DelegateEntry:
    return DelegateEntry(
        backend=table.backend,
        namespace=table.namespace,
        sources=tuple(_named(folder, text) for text in table.sources),
        include=tuple(_named(folder, text) for text in table.include),
        defines=table.defines,
        state_bytes=parse_size(table.state or "") or 0,
    )


def _dtype_requests(
    wanted: Mapping[str, tuple[str, ...]],
) -> tuple[DtypeRequest, ...]:
    # Two spellings, with and without `aten::`, may name one operator.
    texts: dict[OperatorName, set[str]] = {}
    for operator, items in wanted.items():
        texts.setdefault(OperatorName.parse(operator), set()).update(items)
    return tuple(
        DtypeRequest(
            operator=operator,
            dtypes=tuple(sorted(ScalarType[t] for t in items if not _is_key(t))),
            keys=tuple(sorted(KernelKey.parse(t) for t in items if _is_key(t))),
        )
        for operator, items in sorted(texts.items())
    )


def _is_key(text: str) -> bool:
    return text.startswith("v1")
