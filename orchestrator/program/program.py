"""A `.pte` program as frozen facts.

Source: ExecuTorch `schema/program.fbs` and `extended_header.h` (ET12).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orchestrator.core.lazy_bytes import Bytes, part_of, sha256_of

if TYPE_CHECKING:
    from orchestrator.core.border import Border
    from orchestrator.core.bounds import SizeBound
    from orchestrator.core.dtype import ScalarType
    from orchestrator.core.operator import OperatorName
    from orchestrator.program.values import TensorValue, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCall:
    """Calls a kernel; the arguments are value indices, those of the returns last."""

    operator: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateCall:
    """Calls a delegate; the arguments are value indices.

    The last `scratch_count` of them are scratch memory of the call: nothing reads it
    before or after. The count does not take part in comparisons: a program means the
    same without it.
    """

    delegate: int
    args: tuple[int, ...]
    # Not compared: after writing, the file has these as plain arguments, and reads back
    # without the count.
    scratch_count: int = field(default=0, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveCall:
    """Copies value `source` to value `target`; a tensor's memory goes with it."""

    source: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JumpFalseCall:
    """Goes on at instruction `destination` of the method if a value is false.

    The destination may be one past the last instruction, which ends the method.
    """

    condition: int
    destination: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeCall:
    """Gives up the memory of a tensor."""

    value: int


@dataclass(frozen=True, slots=True, kw_only=True)
# Derived from what does least: walks over instructions need no case for it.
class UnknownInstruction(FreeCall):
    """In the place of one that cannot be decoded, which is noted elsewhere."""


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Where in the user's Python code an instruction comes from; "" if unknown."""

    filename: str
    line: int
    name: str
    context: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileSpec:
    """One setting a delegate was compiled with."""

    key: str
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegate:
    """A part of the method that a backend runs.

    Args:
        backend: Such as `XnnpackBackend`.
        is_inline: What the backend gets lies inside the flatbuffer.
        data_index: Into `Program.inline_data` then, else into `Program.segments`.
        compile_specs: In the order of the file.
    """

    backend: str
    is_inline: bool
    data_index: int
    compile_specs: tuple[CompileSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferDevice:
    """Device that holds the arena with memory id `buffer_index`; 0 is the CPU."""

    buffer_index: int
    device_type: int
    device_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerMetadata:
    """How the exporter flattened Python containers to inputs and outputs (JSON)."""

    inputs: str
    outputs: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One entry point.

    Args:
        name: Unique in the program, not empty.
        values: Every slot of the method; instructions name them by index.
        inputs: Value indices.
        outputs: Value indices.
        instructions: In the order they run in. The format groups them into chains;
            every known exporter writes one, and the reader rejects programs with
            more, as the runtime does.
        operators: Named by the index in `KernelCall`; not all need be called.
        delegates: Named by the index in `DelegateCall`.
        arena_bytes: Size of the arena of each memory id; entry 0 is reserved.
        arena_devices: Where arenas lie that have a device named; else the CPU.
        container: None if the file has none.
        frames: Per instruction, where it comes from; empty if the file has none.
        borders: Inputs and outputs that are as the profile says; no part of a file.
        bounds: Sizes that inputs may have, where the export knew; no part of a file.
    """

    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]
    operators: tuple[OperatorName, ...]
    delegates: tuple[Delegate, ...]
    arena_bytes: tuple[int, ...]
    arena_devices: tuple[BufferDevice, ...] = ()
    container: ContainerMetadata | None = None
    frames: tuple[tuple[Frame, ...], ...] = ()
    borders: tuple[Border, ...] = ()
    bounds: tuple[SizeBound, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtendedHeader:
    """The header behind the file identifier.

    Args:
        length: Of the header in bytes, from its magic on.
        program_bytes: Size of the flatbuffer, which is the start of the file.
        segment_base: Where in the file segment offsets count from; 0 if there is no
            segment.
        segment_data_bytes: From the base to the end of the last segment; None if the
            header is too short to say.
    """

    length: int
    program_bytes: int
    segment_base: int
    segment_data_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A block of data after the flatbuffer; `offset` counts from the segment base."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsegmentOffsets:
    """Offsets into one segment; tensors name them by index, entry 0 is reserved."""

    segment_index: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedData:
    """A segment that delegates find by a unique name."""

    key: str
    segment_index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalData:
    """A constant that lies outside the program, or data that its delegates find."""

    name: str
    dtype: ScalarType
    is_constant: bool = True
    data: Bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One `.pte` file. Equality and hash are those of the facts, not of the bytes.

    Args:
        version: Of the schema; 0.
        header: None for a program without segment data.
        methods: In the order of the file.
        segments: In the order of the file.
        constants: Where constant tensors lie; None if there is no constant segment.
        mutable_segments: Where the initial state of mutable tensors lies.
        named_data: In the order of the file.
        inline_constants: (position in the file, size in bytes) of constants inside the
            flatbuffer, the layout of before ExecuTorch 0.7.
        inline_data: (position in the file, size in bytes) of the data of delegates
            that lies inside the flatbuffer.
        data: The whole file, or what was written in its place.
        original: The file, if `data` was written anew, as the device loads no programs
            with scratch memory of delegates beside the values.
        external: Data that lies outside, as far as it was found; by name.
        sharers: Names of the methods that share state (`method/state.py`); no part of
            the file.
    """

    version: int
    header: ExtendedHeader | None
    methods: tuple[Method, ...]
    segments: tuple[Segment, ...]
    constants: SubsegmentOffsets | None
    mutable_segments: tuple[SubsegmentOffsets, ...]
    named_data: tuple[NamedData, ...]
    inline_constants: tuple[tuple[int, int], ...]
    inline_data: tuple[tuple[int, int], ...]
    data: Bytes = field(repr=False, compare=False)
    external: tuple[ExternalData, ...] = ()
    # The lock and the SBOM name what the user gave, not what was made of it.
    original: Bytes | None = field(default=None, repr=False, compare=False)
    sharers: tuple[str, ...] = field(default=(), compare=False)

    @property
    def size_bytes(self) -> int:
        """Size of what the device gets."""
        return len(self.data)

    @property
    def flatbuffer_bytes(self) -> int:
        """Size of the part of the file that holds no segment."""
        return self.size_bytes if self.header is None else self.header.program_bytes

    @property
    def sha256(self) -> str:
        """Digest of the file, in hex."""
        return sha256_of(self.file)

    @property
    def file(self) -> Bytes:
        """The file that was read."""
        return self.data if self.original is None else self.original

    def method(self, name: str) -> Method:
        """The method of this name.

        Raises:
            KeyError: There is none.
        """
        for method in self.methods:
            if method.name == name:
                return method
        raise KeyError(name)

    @property
    def has_inline_constants(self) -> bool:
        """Constants lie in the flatbuffer: there are some, and no segment of them."""
        # Exporters from 0.7 on write constants into a segment, and an empty
        # constant_buffer beside it.
        in_segment = self.constants is not None and self.constants.offsets
        return bool(self.inline_constants) and not in_segment

    def segment_offset(self, index: int) -> int:
        """Where a segment begins, in bytes from the start of the file."""
        base = self.header.segment_base if self.header is not None else 0
        return base + self.segments[index].offset

    def data_offset(self, tensor: TensorValue) -> int:
        """Where a tensor's constant data or initial state begins in the file.

        Args:
            tensor: One that `is_constant` or `is_mutable_state`.

        Raises:
            ValueError: The program has no data for it.
        """
        if tensor.is_mutable_state:
            extra = tensor.extra
            table = self.mutable_segments[extra.mutable_segment_index if extra else 0]
        elif tensor.is_constant and self.has_inline_constants:
            return self.inline_constants[tensor.data_buffer_index][0]
        elif tensor.is_constant and self.constants is not None:
            table = self.constants
        else:
            raise ValueError("the program holds no data for this tensor")
        offset = table.offsets[tensor.data_buffer_index]
        return self.segment_offset(table.segment_index) + offset

    def data_bytes(self, tensor: TensorValue) -> Bytes:
        """A tensor's constant data or initial state, not copied.

        Raises:
            ValueError: The program has no data for it.
        """
        if tensor.is_external and tensor.extra:
            # A handful of names, asked once per tensor.
            for found in self.external:
                if found.name == tensor.extra.qualified_name:
                    return found.data
        start = self.data_offset(tensor)
        return part_of(self.data, start, tensor.size_bytes)

    def has_data(self, tensor: TensorValue) -> bool:
        """Whether a tensor is a constant that was found outside of the program."""
        name = tensor.extra.qualified_name if tensor.extra else ""
        return tensor.is_external and any(name == e.name for e in self.external)

    def segment_bytes(self, index: int) -> Bytes:
        """The data of a segment, not copied."""
        start = self.segment_offset(index)
        return part_of(self.data, start, self.segments[index].size_bytes)

    @property
    def delegate_data(self) -> tuple[tuple[str, int], ...]:
        """Key and bytes of all that delegates find by name, outside included."""
        segments = {i: s.size_bytes for i, s in enumerate(self.segments)}
        inside = [(n.key, segments.get(n.segment_index, 0)) for n in self.named_data]
        outside = [(e.name, len(e.data)) for e in self.external if not e.is_constant]
        return (*inside, *outside)

    def delegate_bytes(self, delegate: Delegate) -> Bytes:
        """What a backend gets to run the delegate, not copied."""
        if not delegate.is_inline:
            return self.segment_bytes(delegate.data_index)
        start, size_bytes = self.inline_data[delegate.data_index]
        return part_of(self.data, start, size_bytes)
