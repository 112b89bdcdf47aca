"""Every command with its arguments, declared once.

Parser, help, man pages and completion are made of this table; so is what requires
PROFILE in commands that work on a workspace without it. Groups, examples and exit codes
are in `manual`.
"""

from __future__ import annotations

from argparse import SUPPRESS
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from orchestrator.cli import values
from orchestrator.cli.declaring import Arguments, Command, Group, Option
from orchestrator.shell.output_file import ANY, FOLDER
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS

READERS: Final[dict[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("PROFILE", "FILE", "DIR", "KEY", "LOCK", "OTHER", "TABLE"), Path),
    **dict.fromkeys(("PROGRAM", "FIRMWARE", "FILE.pte", "F.csv", "F.svg"), Path),
    **dict.fromkeys(("X", "SECONDS"), values.finite_number),
    "DEVICE": values.device,
    "NAMES": values.names,
    "LOW,HIGH": values.pixel_range,
    "SCALE,ZERO_POINT": values.quantization,
    "BEGIN:END": values.sample_range,
    "I/N": values.shard,
    "N": values.job_count,
}
"""What reads a value, by what stands for it in help; any other value is a text."""


_of_product = partial(Option, needs_profile=True)


def _command(text: str, *arguments: Option | Group | str) -> Command:
    """A command; a text among its arguments is an option without more to say."""
    return Command(text, tuple(Option(a) if isinstance(a, str) else a for a in arguments))


def _group(*options: Option | str, title: str = "", text: str | None = None) -> Group:
    """Options below a title; without one, at most one of them is given."""
    return Group(tuple(Option(o) if isinstance(o, str) else o for o in options), title, text)


# Arguments of several commands.

COMMON: Final[Arguments] = (
    _group("-q --quiet  print results and errors only", "-v --verbose  print every step as a line"),
    Option("--json  print results as JSON"),
    Option(
        "--color {auto,always,never}  colours on stderr;"
        " auto: on a terminal, unless NO_COLOR is set",
        default="auto",
    ),
)
"""What every command has, and what may stand before it too."""

_PROFILE = Option("profile PROFILE  profile of the product, a TOML file; - for stdin")
_NO_PROFILE = Option("profile PROFILE?  profile of the product, a TOML file; - for stdin")
_OUT = _of_product("--out DIR  build folder; default: build/NAME in the current folder")
WORKSPACE: Final = _group(
    "--workspace FILE  orchestrator.toml or its folder;"
    " default: the nearest one from the current folder upwards",
    Option(
        "-p --product NAME...  only this product; * stands for any text; may be repeated",
        place="products",
    ),
    "--shard I/N  only part I of N of the products, chosen by their names",
    "--scheduler ADDRESS  do the work on the workers of a Dask scheduler: tcp://HOST:8786",
    "--base REV  show changes from the locks at a git revision",
    Option("--junit FILE  write results as JUnit XML", writes=(".xml",)),
    Option("--markdown FILE  write a summary in Markdown", writes=(".md",)),
    title="without PROFILE: all products of the workspace",
)
_PRODUCT: Arguments = (_PROFILE, _OUT)
_PRODUCTS: Arguments = (_NO_PROFILE, _OUT, WORKSPACE)

_JOBS = Option("-j --jobs N  compile steps at a time; default: what ninja chooses")
_WORKERS = Option("-j --jobs N  products at a time; default: as many as there are cores")
_DENY_FLOAT = Option("--deny-float  fail if a model exported in int8 computes with floats")
_LOCK = _of_product("--lock FILE  the lock; default: beside the profile", place="lock_file")
_LOCK_USE = _group(
    "--no-lock  neither read nor write a lock",
    "--locked  fail if the lock would change",
    "--frozen  like --locked, and compare the inputs first",
)
_LOCKING: Arguments = (_LOCK, _LOCK_USE)
_TARGET: Arguments = (
    Option(
        "--cpu CORE  core, as `orchestrator targets` lists them; default: host", choices=tuple(CPUS)
    ),
    Option("--board BOARD  board, likewise; default: that of the core", choices=tuple(BOARDS)),
    Option("--toolchain  compiler; default: the first that is installed", choices=TOOLCHAINS),
)
_DEPFILE = Option(
    "--depfile FILE  write the files that were read, as a rule for make", writes=(".d",)
)
_DEPFILE_TARGET = Option("--depfile-target NAME  name of the target in the depfile")
_EXPLAIN = _of_product("--explain  show why each stage ran, or did not")
_ON = _of_product(
    "--on DEVICE  run on a device that has the firmware: uart:PORT, gdb:HOST:PORT, or probe"
)
_NO_BUILD = _of_product("--no-build  fail if the build is not current")
_MODEL = Option("--model NAME  model, if there are several")


def _document(text: str) -> Command:
    """A command that prints a document of a build."""
    output = _of_product("--output FILE  where to write it; default: stdout", writes=(".json",))
    return _command(text, *_PRODUCTS, output, _JOBS, *_LOCKING)


# Each option stands here once. It was in up to five places: functions that add
# arguments, lists of names in commands, and what a workspace gets (decision 0042).
COMMANDS: Final = {
    "init": _command(
        "write a profile and a scenario for models",
        "models MODEL*  model.pte, model.pt2, or FILE.py:function that returns one;"
        " default: the .pte and .pt2 files of the folder",
        "--name NAME  name of the product; default: that of the model",
        Option("--dir DIR  folder of the new files; default: the current one", default=Path()),
        *_TARGET,
        "--load {pte,prelinked}  pte (default): the device loads them; prelinked: the build",
        "--lowering NAME  for .pt2 and .py models: what to lower for; default: portable",
        "--quantize  make .pt2 and .py models int8",
        '--flash SIZE  flash budget, such as "256 KiB"',
        '--ram SIZE  RAM budget, such as "64 KiB"',
        "--yes  ask nothing, take the defaults",
    ),
    "new": _command(
        "write an example firmware with a small model", "folder DIR  new or empty folder", *_TARGET
    ),
    "build": _command(
        "build firmware, library and lock file",
        WORKSPACE,
        "profiles PROFILE*  profiles to build, one after the other; - for stdin",
        _OUT,
        _JOBS,
        "-k --keep-going  build the other profiles although one failed",
        *_LOCKING,
        _DENY_FLOAT,
        _EXPLAIN,
        replace(_DEPFILE, needs_profile=True),
        _DEPFILE_TARGET,
    ),
    "watch": _command(
        "build whenever a file changes; show what it costs",
        *_PRODUCT,
        "--scenario FILE  run it after each build, and show the instructions that it executes",
        _JOBS,
    ),
    "plan": _command("show what would be built and why; needs no compiler", *_PRODUCT),
    "check": _command(
        "check profile, models, kernels and memory; needs no compiler",
        *_PRODUCTS,
        _WORKERS,
        _DENY_FLOAT,
    ),
    "memory": _command(
        "show arenas, and what less RAM costs",
        *_PRODUCT,
        "--pareto  list plans by rows: bytes against instructions",
        Option("--svg F.svg  draw what --pareto lists", writes=(".svg",)),
    ),
    "export": _command(
        "export models given as Python to programs",
        *_PRODUCT,
        "--again  export even if nothing changed",
        _DENY_FLOAT,
        Option(
            "--no-accelerate  use ExecuTorch's lowering unchanged", default=True, place="accelerate"
        ),
        "--verify  lower both ways, and compare every graph and the program",
        "--explain  show what each pass of lowering did",
    ),
    "inspect": _command(
        "show what is in a .pte or .ptd file", Option("model MODEL  the file", read=Path)
    ),
    "memory-plan": _command(
        "give each block of a CSV file an offset",
        "file FILE  CSV with id,lower,upper,size",
        Option("--capacity N  accept any plan of at most N bytes", read=values.byte_count),
        Option("--output F.csv  write the blocks with offsets", writes=(".csv",)),
        Option("--svg F.svg  draw the plan", writes=(".svg",)),
    ),
    "oplist": _command(
        "write an operator list for ExecuTorch's own build",
        "--model FILE...  a .pte program whose operators to list",
        "--ops LIST...  operator names",
        "--ops-dict JSON...  operators with dtypes or kernel keys",
        "--yaml FILE...  functions.yaml or selected_operators.yaml",
        Option("--all  list every operator", place="every"),
        Option("--output FILE  where to write", required=True, writes=(".yaml", ".yml", FOLDER)),
        _DEPFILE,
        _DEPFILE_TARGET,
    ),
    "headers": _command(
        "write headers of an operator list for ExecuTorch's own build",
        Option("--oplist FILE...  an operator list; several are merged", required=True),
        Option("--output-dir DIR  folder of the headers", required=True),
        Option(
            "--prim-ops N  prim ops that ExecuTorch registers, or `listed` for those of the list;"
            " default: 28, as in 1.5",
            read=values.prim_op_count,
        ),
    ),
    "run": _command(
        "run the built firmware on .npy inputs",
        *_PRODUCTS,
        replace(_MODEL, needs_profile=True),
        Option("--method NAME  default: forward", default="forward"),
        _of_product("--input FILE...  a .npy file or a number, once for each input", read=str),
        _of_product(
            "--expect FILE...  a .npy file or a number to compare with, once for each output",
            read=str,
        ),
        _of_product("--atol X  absolute tolerance"),
        _of_product("--rtol X  relative tolerance"),
        _of_product("--output-dir DIR  write every output as .npy"),
        _of_product("--scenario FILE  JSON file of calls and expected outputs"),
        _ON,
        _NO_BUILD,
        *_LOCKING,
        _JOBS,
        Option("--timeout SECONDS  stop the run after that time; default: 600", default=600.0),
        # argparse would name this option `profile`, which the positional argument has.
        _of_product("--profile  show what each operator costs", place="costs"),
        _of_product("--passes N  with --profile, not in an emulator: runs to take the median of"),
    ),
    "profile": _command(
        "compare what runs cost, by operator",
        "action ACTION{diff}  diff: show each cost before and after, and their ratio",
        Option("before BEFORE  what `run --profile --json` printed before a change", read=Path),
        Option("after AFTER  what it printed after that", read=Path),
    ),
    "test": _command(
        "compare the product with its own program, bit for bit",
        *_PRODUCTS,
        _of_product("--runs N  random calls of each method"),
        _of_product("--seed N  of the random inputs", read=values.count),
        _of_product("--scenario FILE  more calls; default: scenarios/NAME.json beside the profile"),
        _of_product("--bisect  find the pass or the part of the plan that makes a difference"),
        _ON,
        *_LOCKING,
        _JOBS,
        Option(
            "--timeout SECONDS  stop each firmware after that time; default: 600", default=600.0
        ),
    ),
    "flash": _command(
        "write the built firmware to a device",
        *_PRODUCT,
        Option(
            "--on DEVICE  gdb:HOST:PORT of a GDB server; probe, as probe:pyocd, probe:openocd,"
            " probe:jlink; or uf2:DIR, the drive of a boot loader",
            required=True,
        ),
        "--yes  do not ask",
        *_LOCKING,
        _JOBS,
    ),
    "decode": _command(
        "explain a status of the device",
        "code CODE  number or name of an orch_status",
        Option(
            "--profile PROFILE  profile that the device was built from",
            required=True,
            place="from_profile",
        ),
        Option("--instruction N  the instruction that failed", read=values.instruction_index),
        _MODEL,
        "--method NAME  method, if there are several",
    ),
    "evaluate": _command(
        "measure the accuracy of a model over a data set",
        *_PRODUCTS,
        Option(
            "--data DATA  CSV or .npz file, folder of samples or classes, folder that `datasets`"
            " saved,"
            " or function as package.module:name",
            required=True,
        ),
        Option(
            "--inputs NAMES  columns or arrays of the inputs; default: all columns but the label",
            default=(),
        ),
        Option(
            "--labels NAME  column or array of the labels, or none; default: the column label,"
            " class,"
            " target or y, else the last one",
            default="",
        ),
        "--pixels LOW,HIGH  what black and white are in images, as in --pixels=-1,1; default 0,1",
        _MODEL,
        Option("--method NAME  method; default: forward", default="forward"),
        "--metric METRIC  top1, mae, auc, or package.module:name;"
        " default: top1 for classes, mae for other numbers",
        "--reference FILE.pte  program of the float model, to compare with",
        "--layers N  compare every layer with the reference, over the first N samples",
        "--emulator  run the board's firmware in its emulator; default: on this machine",
        _ON,
        Option("--samples BEGIN:END  part of the data; END is exclusive", default=(0, None)),
        Option("--classes NAMES  names of the classes, separated by commas", default=()),
        Option("--worst N  samples to list; default 5", read=values.count, default=5),
        "--input-quant SCALE,ZERO_POINT  of integer inputs that stand for real numbers",
        "--output-quant SCALE,ZERO_POINT  of integer outputs that stand for real numbers",
        "--at-least X  fail if the metric is less",
        "--at-most X  fail if the metric is more",
        "--resume  continue an interrupted evaluation",
        _of_product("--results FILE  where outputs are kept", writes=(ANY,)),
        Option("--timeout SECONDS  seconds for one sample; default 600", default=600.0),
        *_LOCKING,
        _JOBS,
    ),
    "size": _command(
        "show flash and RAM of the last build, or of a variant",
        *_PRODUCTS,
        _of_product("--full  every contributor, section and method"),
        _of_product("--by {op,kernel,model,section}  one table, with its rows explained"),
        _of_product("--diff OTHER  compare with a report.json, or with another profile's build"),
        _group(
            _of_product("--without-model NAME...  leave out a model"),
            _of_product(
                "--without-op NAME...  leave out an operator that only the profile requests"
            ),
            _of_product("--dtypes {all,models}  as dtypes.select in the profile", default=""),
            _of_product("--optimize {size,speed,debug}  as target.optimize", default=""),
            _of_product("--toolchain  as target.toolchain", choices=TOOLCHAINS, default=""),
            title="what if",
            text="build a variant and compare",
        ),
        _JOBS,
    ),
    "report": _command(
        "show the last build as a page, report.html",
        *_PRODUCTS,
        _of_product("--open  open it in the browser"),
        _group(
            _of_product("--serve  serve it on localhost; the page reloads when a build ends"),
            _of_product(
                "--svg KIND{flash,memory,arena,graph}  write pictures as SVG: flash, memory,"
                " arena or graph"
            ),
            _of_product(
                "--png KIND{flash,memory,arena,graph}  write pictures as PNG: flash, memory,"
                " arena or graph"
            ),
        ),
        _of_product(
            "--diff OTHER...  add the changes from another build folder, report.json, profile or"
            " lock"
        ),
        _of_product("--history  add the sizes of each commit of the lock, from git"),
        _of_product(
            "--history-of OTHER...  the same with a line for other products: a lock, profile, or"
            " folder"
        ),
        _of_product("--costs FILE  add what `run --profile --json` measured"),
        _of_product("--accuracy FILE...  add what `evaluate --json` found"),
        _of_product(
            "--output FILE  where to write a page with additions; default: in the build folder",
            writes=(".html",),
        ),
        _of_product("--output-dir DIR  folder of the pictures"),
        _of_product("--port N  of --serve; default: a free one", read=values.port_number),
        _NO_BUILD,
        *_LOCKING,
        _JOBS,
    ),
    "scratch": _command(
        "show scratch memory of each call, or compare tables",
        _NO_PROFILE,
        _OUT,
        Option("--check TABLE+  CSV of scratch sizes of your CMSIS-NN", default=[]),
    ),
    "why": _command(
        "show why something is in the product and what it costs, or why not",
        *_PRODUCT,
        "name NAME  operator, kernel function, source or symbol to look for",
        Option("--not  show why it is not in the product", place="absent"),
        "--dtype DTYPE  with --not: a dtype that the kernel lacks, such as Half",
        # `why-not PROFILE NAME DTYPE` of older versions.
        Option("dtype DTYPE?", default=SUPPRESS),
    ),
    "compat": _command(
        "check whether built firmware can run new programs",
        "firmware FIRMWARE  lock, build folder, profile or product",
        "programs PROGRAM+  new .pte programs",
        "--model NAME  the model they replace",
    ),
    "update": _command(
        "make or show a signed update of a model",
        "action ACTION{pack,show}  pack: make one of a program; show: what is in one",
        "file FILE  the new .pte program; or an update",
        Option("--for LOCK  pack: lock of the firmware in the field", place="firmware"),
        "--model NAME  pack: the model it replaces, if several",
        Option(
            "--version N  pack: version of the model; devices refuse lower ones",
            read=values.model_version,
            place="update_version",
        ),
        Option(
            "--needs X.Y.Z  pack: oldest firmware that runs it; default: that of the lock",
            read=values.firmware_version,
        ),
        "--key KEY  pack: private key, PEM; show: public key, to check the signature",
        Option("--output FILE  pack: the update; default: FILE.update", writes=(".update",)),
    ),
    "package": _command(
        "make a package for another build system",
        _PROFILE,
        Option(
            "--for TARGET  cmake, conan, meson, zephyr, esp-idf, arduino, platformio, cmsis,"
            " bazel or rust",
            required=True,
            place="ecosystem",
        ),
        Option(
            "--out DIR  folder of the package; default: packages/TARGET/NAME",
            place="package_folder",
        ),
        "--binary  the library as built, instead of its sources",
        "--scenario FILE  calls of the self test; default: one of each method, random inputs",
        Option(
            "--version X.Y.Z  version of the package; default: that of the profile",
            read=values.version,
            place="package_version",
        ),
        _JOBS,
        *_LOCKING,
    ),
    "sbom": _document("print what the product consists of, as CycloneDX"),
    "provenance": _document("print how the product was made, as an in-toto statement"),
    "signature": _command(
        "sign a file, or check who signed it",
        "action ACTION{create,verify}  create: put a file into a signed DSSE envelope; verify:"
        " check an envelope",
        "file FILE  what to sign; or an envelope",
        Option("--key KEY  create: private key, PEM; verify: public key", required=True),
        Option(
            "--output FILE  create: the envelope, default: FILE.dsse.json; verify: write what is"
            " in it",
            writes=(ANY,),
        ),
    ),
    "lock": _command(
        "write the lock file",
        *_PRODUCTS,
        _JOBS,
        _LOCK,
        Option("--check  compare, change nothing", place="locked"),
        "--outputs  with --check: compare the published outputs with the lock",
    ),
    "verify": _command(
        "rebuild and compare every byte, or one file with the lock",
        *_PRODUCTS,
        _JOBS,
        "--artefact --artifact FILE  identify this file as an output of the lock; build nothing",
        _LOCK,
    ),
    "clean": _command("remove the build folder", *_PRODUCTS, _WORKERS),
    "cache": _command(
        "show, shrink, check or publish the objects that builds share",
        "action ACTION{size,prune,verify,publish}  size: show how much there is; prune: remove"
        " damaged objects, and those"
        " that were not used for the longest time; verify: compare all digests;"
        " publish: give all of them to other machines, with a signed list",
        "--list-only  with publish: only the list of objects, where others have the objects"
        " from ccache's remote storage",
        "--exports  with publish: programs made from Python code as well, with their inputs and"
        " outputs",
        "url URL?  where publish writes: a folder, or a URL that fsspec can write to",
        "--key KEY  private key that publish signs with, in PEM",
        Option(
            "--to SIZE  what prune leaves at most, such as 256 MiB; default: nothing",
            read=values.memory_size,
            default=0,
            place="limit_bytes",
        ),
    ),
    "targets": _command(
        "list cores, toolchains, boards and operators",
        "--operators  list the operators that have a kernel, with dtypes and dim orders",
    ),
    "doctor": _command("list compilers and emulators, found and missing"),
    "schema": _command(
        "print the JSON Schema of profiles",
        Option("--workspace  that of orchestrator.toml instead", place="of_workspace"),
    ),
    "completion": _command(
        "print a completion script for a shell", "shell {bash,zsh,fish}  the shell that reads it"
    ),
    "man": _command(
        "print or write man pages",
        "page COMMAND*  default: the page of orchestrator",
        "--output-dir DIR  write the pages of all commands into this folder",
    ),
}
"""Every command by name, in the order in which completion offers them."""
