"""Lowering."""

from types import SimpleNamespace


def EdgeCompileConfig(*, _check_ir_validity):  # noqa: N802
    """Nothing."""
    return _check_ir_validity


def ExecutorchBackendConfig(*, passes):  # noqa: N802
    """Nothing."""
    return passes


class _Edge:
    def __init__(self, program):
        self._edge_programs = {"forward": program}

    def exported_program(self):
        """The program."""
        return self._edge_programs["forward"]

    def to_executorch(self, config):
        """The bytes that the module holds."""
        del config
        data = self.exported_program().own.program
        plan = SimpleNamespace(operators=[], chains=[], delegates=[])
        graph = SimpleNamespace(graph_module=SimpleNamespace(modules=lambda: ()))
        return SimpleNamespace(
            buffer=data,
            executorch_program=SimpleNamespace(execution_plan=[plan]),
            exported_program=lambda: graph,
        )


def to_edge(program, *, compile_config):
    """An edge program; a module that has `unlowered` says so."""
    del compile_config
    if hasattr(program.own, "unlowered"):
        raise RuntimeError(program.own.unlowered)
    return _Edge(program)


def to_edge_transform_and_lower(program, *, partitioner, compile_config):
    """The same."""
    del partitioner, compile_config
    return _Edge(program)
