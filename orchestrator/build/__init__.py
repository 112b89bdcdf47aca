"""The build: a profile in, firmware, library, reports and a lock out.

`table` lists the stages and `inputs` what they read; `engine` decides which run, and
runs them. `product` compiles and publishes.
"""

from orchestrator.build.engine import Build
from orchestrator.build.exporting import ExportChoice
from orchestrator.build.product import BuildReport, build_product, prove
from orchestrator.build.project import BuildOptions, Project, Shell, load, open_build

__all__ = [
    "Build",
    "BuildOptions",
    "BuildReport",
    "ExportChoice",
    "Project",
    "Shell",
    "build_product",
    "load",
    "open_build",
    "prove",
]
