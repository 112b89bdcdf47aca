"""Headers of ExecuTorch's own tool for lists of which we choose to answer otherwise.

    python tests/data/op_variants/make_variants.py

Needs ExecuTorch 1.5 (`pip install executorch==1.5.1`); writes NAME.yaml, the list, and
NAME.h, what `gen_selected_op_variants` makes of it, beside this file.
"""
# mypy: ignore-errors
# executorch is not there when the project is checked.

from __future__ import annotations

from pathlib import Path

import yaml
from executorch.codegen.tools.gen_selected_op_variants import main

FOLDER = Path(__file__).parent
FLOAT, INT, UINT64 = (f"v1/{code};0|{code};0" for code in (6, 3, 29))

# name: (kernel keys by operator, whether every operator is selected)
LISTS: dict[str, tuple[dict[str, list[str]], bool]] = {
    "uint64": ({"aten::add.out": [FLOAT, UINT64], "p::f.out": [UINT64]}, False),
    "nothing": ({}, False),
    "every_operator": ({"aten::add.out": [FLOAT]}, True),
    "default_last": ({"aten::add.out": [FLOAT, "default"]}, False),
    "default_first": ({"aten::add.out": ["default", FLOAT]}, False),
    "two_keys": ({"aten::add.out": [FLOAT, INT], "p::f.out": ["default"]}, False),
}

for name, (keys, every_operator) in LISTS.items():
    path = FOLDER / f"{name}.yaml"
    document = {
        "include_all_operators": every_operator,
        "operators": {operator: {} for operator in keys},
        "et_kernel_metadata": keys,
    }
    path.write_text(yaml.safe_dump(document, sort_keys=True))
    main([f"--yaml_file_path={path}", f"--output_dir={FOLDER}"])
    (FOLDER / "selected_op_variants.h").rename(FOLDER / f"{name}.h")
