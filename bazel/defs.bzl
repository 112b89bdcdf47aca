"""Products and operator lists of Orchestrator, for Bazel and Buck2: docs/bazel.md.

Both macros run Orchestrator in an action. Its inputs are those that the call names,
nothing else: the action copies them, so that it works in a sandbox, remotely, and with
files that other rules make.
"""

# Headers in orch/; a product has those that it needs.
_HEADERS = ["complex", "quantize", "sizes", "status", "trace", "update"]

_LISTS = [
    "selected_max_kernel_num.h",
    "selected_op_variants.h",
    "selected_operators.yaml",
    "selected_prim_ops.h",
]

def _is_buck():
    return hasattr(native, "cxx_library")

def _quoted(text):
    """A word of the shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"

def _genrule(name, srcs, outs, script, tool, **arguments):
    """A rule that runs a script for both build systems.

    In the script, files lie in `$files` under their paths in the workspace, results go
    to `$out`, and `$tool` is the program.

    Args:
        name: Of the rule.
        srcs: Labels of the files it reads.
        outs: Paths of the files it writes.
        script: What it does, for sh.
        tool: Label of the program, or a command on the PATH.
        **arguments: For the rule, such as tags.
    """
    is_label = ":" in tool or "//" in tool
    begin = """set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME="$work"
"""
    if _is_buck():
        program = "$(exe {})".format(tool) if is_label else tool
        native.genrule(
            name = name,
            srcs = {_path(label): label for label in srcs},
            outs = {out: [out] for out in outs},
            default_outs = outs,
            cmd = (begin + "files=$SRCDIR out=$OUT tool=\"{}\"\n".format(program) +
                   script),
            **arguments
        )
        return
    program = "$(execpath {})".format(tool) if is_label else tool
    native.genrule(
        name = name,
        srcs = srcs,
        outs = ["{}/{}".format(name, out) for out in outs],
        cmd = (begin.replace("$", "$$") +
               "out=$(RULEDIR)/{} tool=\"{}\" bin=$(BINDIR)\n".format(name, program) +
               """files="$$work/files"
for file in $(SRCS); do
  to="$$files/$${file#$$bin/}"
  mkdir -p "$$(dirname "$$to")"
  cp -L "$$file" "$$to"
done
""" + script.replace("$", "$$")),
        tools = [tool] if is_label else [],
        **arguments
    )

def _path(label):
    """Where the action finds a file: its path in the workspace."""
    package, _, file = label.rpartition(":")
    if label.startswith("//"):
        package = package[2:]
    elif not label.startswith("@"):
        package, file = native.package_name(), file or label
    else:
        fail("{}: files of other repositories have no path here".format(label))
    return package + "/" + file if package else file

def orchestrator_profile(
        name,
        profile,
        models = [],
        srcs = [],
        product = None,
        lock = None,
        tool = "orchestrator",
        cc_library = None,
        visibility = None,
        **arguments):
    """The library of a profile, to depend on as on any library.

    Args:
        name: Of the library. `NAME_build` is the rule that makes it.
        profile: The profile, a file of this package.
        models: Labels of the models that it names.
        srcs: Labels of all other files that it names: lists of operators, sources of
            kernels, cases.
        product: The name in the profile, if it is not the library's.
        lock: Label of the lock, which then has to be current; without it, none is read.
        tool: Label of the program orchestrator, or a command on the PATH.
        cc_library: The rule for libraries, where the build system has none of its own:
            from rules_cc, with Bazel 8 and newer.
        visibility: Of the library.
        **arguments: For the rule of the library, such as target_compatible_with. The
            default of linkopts is -no-pie, as libraries for the host are not position
            independent.
    """
    product = product or name
    library = "lib{}.a".format(product)
    header = "include/{}.h".format(product)
    headers = ["include/orch/{}.h".format(each) for each in _HEADERS]
    locked = "--locked --lock \"$files\"/" + _quoted(_path(lock)) if lock else "--no-lock"
    work = name + "_build"
    _genrule(
        name = work,
        srcs = [profile] + models + srcs + ([lock] if lock else []),
        outs = [library, header] + headers,
        tool = tool,
        script = """
made="$work/made"
$tool build -q "$files"/{profile} --out "$made" {locked}
if ! [ -f "$made/{library}" ]; then
  echo "orchestrator_profile {name}: the profile has another name: set product" >&2
  exit 2
fi
mkdir -p "$out/include/orch"
cp "$made/{library}" "$out/{library}"
cp "$made/{header}" "$out/{header}"
for header in {headers}; do
  if [ -f "$made/$header" ]; then
    cp "$made/$header" "$out/$header"
  else
    echo "/* Nothing of it is in this product. */" > "$out/$header"
  fi
done
""".format(
            profile = _quoted(_path(profile)),
            locked = locked,
            library = library,
            header = header,
            headers = " ".join(headers),
            name = name,
        ),
    )
    options = arguments.pop("linkopts", ["-no-pie"])
    if _is_buck():
        native.prebuilt_cxx_library(
            name = name,
            static_lib = ":{}[{}]".format(work, library),
            exported_headers = {
                path.replace("include/", "", 1): ":{}[{}]".format(work, path)
                for path in [header] + headers
            },
            header_namespace = "",
            exported_linker_flags = options,
            visibility = visibility,
            **arguments
        )
        return
    rule = cc_library or native.cc_library
    rule(
        name = name,
        srcs = ["{}/{}".format(work, library)],
        hdrs = ["{}/{}".format(work, path) for path in [header] + headers],
        includes = [work + "/include"],
        linkopts = options,
        visibility = visibility,
        **arguments
    )

def orchestrator_selected_ops(
        name,
        models = [],
        ops = [],
        ops_dict = None,
        yaml = [],
        include_all_operators = False,
        prim_ops = None,
        tool = "orchestrator",
        cc_library = None,
        visibility = None,
        **arguments):
    """The operator list of models and its headers, for ExecuTorch's own build.

    `NAME` is a library of the headers, `NAME_build` the rule that makes them and
    `selected_operators.yaml`.

    Args:
        name: Of the library.
        models: Labels of .pte programs: their operators and kernel keys.
        ops: Operators with every dtype.
        ops_dict: Operators with dtypes or kernel keys, {operator: [dtype, ...]}.
        yaml: Labels of functions.yaml files or operator lists.
        include_all_operators: Whether every operator is selected.
        prim_ops: Number of prim ops that ExecuTorch always registers.
        tool: As for orchestrator_profile.
        cc_library: As for orchestrator_profile.
        visibility: Of the library and of the list.
        **arguments: For the rule of the library.
    """
    if not (models or ops or ops_dict or yaml or include_all_operators):
        fail("orchestrator_selected_ops {}: nothing is selected: ".format(name) +
             "add models, ops, ops_dict, yaml or include_all_operators")
    words = []
    for label in models:
        words += ["--model", "\"$files\"/" + _quoted(_path(label))]
    for label in yaml:
        words += ["--yaml", "\"$files\"/" + _quoted(_path(label))]
    for operator in ops:
        words += ["--ops", _quoted(operator)]
    if ops_dict:
        words += ["--ops-dict", _quoted(_json(ops_dict))]
    if include_all_operators:
        words.append("--all")
    more = "--prim-ops {}".format(prim_ops) if prim_ops != None else ""
    work = name + "_build"
    _genrule(
        name = work,
        srcs = models + yaml,
        outs = _LISTS,
        tool = tool,
        visibility = visibility,
        script = """
mkdir -p "$out"
out=$(cd "$out" && pwd)
$tool plumbing oplist -q {words} --output "$out/selected_operators.yaml"
$tool plumbing headers -q --oplist "$out/selected_operators.yaml" --output-dir "$out" {more}
""".format(words = " ".join(words), more = more),
    )
    headers = [path for path in _LISTS if path.endswith(".h")]
    if _is_buck():
        native.cxx_library(
            name = name,
            exported_headers = {
                path: ":{}[{}]".format(work, path)
                for path in headers
            },
            header_namespace = "",
            visibility = visibility,
            **arguments
        )
        return
    rule = cc_library or native.cc_library
    rule(
        name = name,
        hdrs = ["{}/{}".format(work, path) for path in headers],
        includes = [work],
        visibility = visibility,
        **arguments
    )

def _json(ops_dict):
    """JSON of {operator: [dtype, ...]}; their names need no escapes."""
    return "{" + ", ".join([
        "\"{}\": [{}]".format(operator, ", ".join(["\"{}\"".format(d) for d in dtypes]))
        for operator, dtypes in ops_dict.items()
    ]) + "}"
