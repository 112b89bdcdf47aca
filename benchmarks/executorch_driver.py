"""ExecuTorch's own build tools, as commands and timed within one process.

Runs in the interpreter that has the package `executorch`, so it needs nothing of ours:

    python executorch_driver.py commands MODEL FOLDER
    python executorch_driver.py time MODEL FOLDER REPETITIONS
    python executorch_driver.py lists MODELS FOLDER REPETITIONS

All print JSON; MODELS is a folder of programs. The tools are called as ExecuTorch's
CMake files call them for one model and the portable kernel library.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import sys
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

TOOLS = {
    "gen_oplist": "executorch.codegen.tools.gen_oplist",
    "gen_all_oplist": "executorch.codegen.tools.gen_all_oplist",
    "codegen.gen": "executorch.codegen.gen",
    "gen_selected_op_variants": "executorch.codegen.tools.gen_selected_op_variants",
    "gen_selected_prim_ops": "executorch.codegen.tools.gen_selected_prim_ops",
    "gen_max_kernel_num": "executorch.codegen.tools.gen_max_kernel_num",
}

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


def arguments(model: Path, folder: Path) -> dict[str, list[str]]:
    """Arguments of each tool in order; writes the stand-ins into `folder`."""
    for name, text in STAND_INS.items():
        path = folder / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "all").mkdir(exist_ok=True)
    (folder / "out").mkdir(exist_ok=True)
    native = _package("torchgen") / "packaged" / "ATen" / "native"
    functions = _package("executorch") / "kernels" / "portable" / "functions.yaml"
    own = folder / "selected_operators.yaml"
    listed = folder / "models.txt"
    listed.write_text(f"{own}\n", encoding="utf-8")
    merged = folder / "all" / "selected_operators.yaml"
    out = f"--output-dir={folder / 'out'}"
    return {
        "gen_oplist": [f"--output_path={own}", f"--model_file_path={model}"],
        "gen_all_oplist": [f"--output-dir={folder / 'all'}", f"--model-file-list-path=@{listed}"],
        "codegen.gen": [
            f"--source-path={folder / 'source'}",
            f"--install-dir={folder / 'out'}",
            f"--tags-path={native / 'tags.yaml'}",
            f"--aten-yaml-path={native / 'native_functions.yaml'}",
            f"--op-selection-yaml-path={merged}",
            f"--functions-yaml-path={functions}",
        ],
        "gen_selected_op_variants": [f"--yaml-file-path={merged}", out],
        "gen_selected_prim_ops": [f"--op-selection-yaml-path={merged}", out],
        "gen_max_kernel_num": [
            f"--oplist-yaml={merged}",
            f"--prim-ops-source={folder / 'source' / 'register_prim_ops.cpp'}",
            f"--output-path={folder / 'out' / 'selected_max_kernel_num.h'}",
        ],
    }


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"no package {name} in {sys.executable}")
    return Path(spec.submodule_search_locations[0])


def clear_caches(*packages: str) -> None:
    """Forget what functions of these packages remember between calls."""
    prefixes = tuple(f"{package}." for package in packages)
    for name, module in list(sys.modules.items()):
        if not name.startswith(prefixes):
            continue
        for attribute, value in list(vars(module).items()):
            if hasattr(type(value), "cache_clear"):
                value.cache_clear()
            elif isinstance(value, dict) and attribute.endswith("_CACHE"):
                value.clear()


def time_tools(
    tools: dict[str, list[str]], *, repetitions: int, fresh: bool
) -> dict[str, list[float]]:
    """Processor seconds of each tool's `main`, one run after another.

    Args:
        tools: Arguments by tool.
        repetitions: After one run that warms the caches of the system.
        fresh: Clear the tools' own caches before each run.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tools}
    for turn in range(repetitions + 1):
        if fresh:
            clear_caches("torchgen", "executorch")
        for name, args in tools.items():
            module = importlib.import_module(TOOLS[name])
            # codegen.gen reads sys.argv, the others their argument.
            sys.argv = [name, *args]
            call = [] if name == "codegen.gen" else [args]
            with contextlib.redirect_stdout(io.StringIO()):
                start = time.process_time()
                module.main(*call)
                taken = time.process_time() - start
            if turn:
                seconds[name].append(taken)
    return seconds


def time_lists(models: list[Path], folder: Path, *, repetitions: int) -> dict[str, list[float]]:
    """Processor seconds of the operator lists of many models, and of their union.

    The models of one run share what the tools remember, as if one process did all.
    """
    names = ("gen_oplist", "gen_all_oplist")
    tools = {name: importlib.import_module(TOOLS[name]) for name in names}
    own = [folder / f"{model.stem}.yaml" for model in models]
    listed = folder / "models.txt"
    listed.write_text("".join(f"{path}\n" for path in own), encoding="utf-8")
    calls = {
        "gen_oplist": [
            [f"--output_path={path}", f"--model_file_path={model}"]
            for path, model in zip(own, models, strict=True)
        ],
        "gen_all_oplist": [[f"--output-dir={folder}", f"--model-file-list-path=@{listed}"]],
    }
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(repetitions + 1):
        clear_caches("torchgen", "executorch")
        for name in names:
            with contextlib.redirect_stdout(io.StringIO()):
                start = time.process_time()
                for args in calls[name]:
                    tools[name].main(args)
                taken = time.process_time() - start
            if turn:
                seconds[name].append(taken)
    return seconds


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("mode", choices=("commands", "time", "lists"))
    parser.add_argument("model", help="a program; of `lists` a folder of them")
    parser.add_argument("folder", help="where the tools write")
    parser.add_argument("repetitions", type=int, nargs="?", default=1)
    options = parser.parse_args()
    mode, model, folder = options.mode, options.model, options.folder
    if mode == "lists":
        models = sorted(Path(model).resolve().glob("*.pte"))
        times = time_lists(models, Path(folder).resolve(), repetitions=options.repetitions)
        json.dump(times, sys.stdout)
        return
    tools = arguments(Path(model).resolve(), Path(folder).resolve())
    versions = {n: version(n) for n in ("executorch", "torch")}
    document: dict[str, object] = {"versions": versions}
    if mode == "commands":
        document["commands"] = {
            name: [sys.executable, "-m", TOOLS[name], *args] for name, args in tools.items()
        }
    else:
        for module in TOOLS.values():
            importlib.import_module(module)
        document["fresh"] = time_tools(tools, repetitions=options.repetitions, fresh=True)
        document["kept"] = time_tools(tools, repetitions=options.repetitions, fresh=False)
    json.dump(document, sys.stdout)


if __name__ == "__main__":
    main()
