"""ExecuTorch's own tools, called in the interpreter that has the package `executorch`.

    python executorch_tools.py FOLDER

Reads FOLDER/steps.json, a list of `{"tool": ..., "args": [...]}`, and writes
FOLDER/answers.json with one answer per step. Needs nothing of ours.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PRIM_OPS = 28
"""Entries of upstream's kernels/prim_ops/register_prim_ops.cpp, ExecuTorch 1.5."""

# The wheel lacks what the tools read of the source tree. These stand in for it: the
# same placeholders and the same array, without the text around them.
STAND_INS = {
    "templates/Functions.h": "${static_dispatch_extra_headers}\n${Functions_declarations}\n",
    "templates/NativeFunctions.h": "${headers}\n${nativeFunctions_declarations}\n",
    "templates/RegisterKernels.h": "// ${generated_comment}\n",
    "templates/RegisterCodegenUnboxedKernels.cpp": '#include "${fn_header}"\n'
    "static Kernel kernels_to_register[] = {\n    ${unboxed_kernels}\n};\n",
    "register_prim_ops.cpp": "static Kernel prim_ops[] = {\n"
    + '    Kernel("executorch_prim::op", op),\n' * PRIM_OPS
    + "};\n",
}

REGISTRATION = re.compile(r'Kernel\(\s*"([^"]+)",\s*(?:"([^"]+)",)?')


def package(name: str) -> Path:
    """Folder of an installed package."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"no package {name} in {sys.executable}")
    return Path(spec.submodule_search_locations[0])


def call(module: str, args: list[str], *, from_argv: bool = False) -> None:
    """Run a tool's `main`; what it prints is dropped."""
    sys.argv = [module, *args]
    with contextlib.redirect_stdout(io.StringIO()):
        main = importlib.import_module(f"executorch.codegen.{module}").main
        # codegen.gen reads sys.argv, the others their argument.
        main(*([] if from_argv else [args]))


def registered(folder: Path, oplist: str, functions: str) -> list[list[str]]:
    """(operator, kernel key or "") of all kernels that codegen.gen registers."""
    native = package("torchgen") / "packaged" / "ATen" / "native"
    out = folder / "out"
    out.mkdir(exist_ok=True)
    args = [
        f"--source-path={folder / 'source'}",
        f"--install-dir={out}",
        f"--tags-path={native / 'tags.yaml'}",
        f"--aten-yaml-path={native / 'native_functions.yaml'}",
        f"--op-selection-yaml-path={oplist}",
        f"--functions-yaml-path={functions}",
    ]
    call("gen", args, from_argv=True)
    text = (out / "RegisterCodegenUnboxedKernelsEverything.cpp").read_text()
    return sorted([m[1], m[2] or ""] for m in REGISTRATION.finditer(text))


def answer(folder: Path, step: dict[str, Any]) -> object:
    """Carry out one step."""
    args = list(step.get("args", []))
    match step["tool"]:
        case "registered":
            # An absolute path stays what it is.
            functions = package("executorch") / step["functions"]
            return registered(folder, step["list"], str(functions))
        case "library":
            return str(package("executorch") / step["name"])
        case "gen_max_kernel_num":
            source = folder / "source" / "register_prim_ops.cpp"
            args.append(f"--prim-ops-source={source}")
        case "gen_oplist" if "library" in step:
            path = package("executorch") / step["library"]
            args.append(f"--ops_schema_yaml_path={path}")
    call(f"tools.{step['tool']}", args)
    return None


def main() -> None:
    """Carry out every step."""
    folder = Path(sys.argv[1]).resolve()
    for name, text in STAND_INS.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    steps = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    answers = [answer(folder, step) for step in steps]
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
