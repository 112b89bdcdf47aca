"""The pipeline: a profile in, firmware, library, reports and a lock out.

`Inputs` reads, `Stages` computes what is pure, `Pipeline` compiles and publishes.
"""

from orchestrator.build.inputs import BuildOptions, ExportChoice, Inputs, load
from orchestrator.build.pipeline import BuildReport, Pipeline
from orchestrator.shell.build_folder import WORK

__all__ = [
    "WORK",
    "BuildOptions",
    "BuildReport",
    "ExportChoice",
    "Inputs",
    "Pipeline",
    "load",
]
