"""`evaluate` on examples/digits: the firmware on this machine, over whole data sets."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from orchestrator.cli.main import run
from orchestrator.program.encode import write_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import DoubleValue, IntValue
from orchestrator.shell.toolchain import InstalledToolchains
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
DATA = DIGITS / "digits.npz"
FLOAT = DIGITS / "digits_float.pte"
COUNT = 1797
RIGHT = 1765
"""Of both models, of all digits; examples/digits/README.md states it."""

pytestmark = pytest.mark.toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What one evaluation said."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The result with --json."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    def problem(self, code: str, exit_code: int = 2) -> dict[str, Any]:
        """The only diagnostic."""
        assert self.code == self.document["exit_code"] == exit_code
        (found,) = self.document["diagnostics"]
        assert found["code"] == code
        assert "Traceback" not in self.err
        diagnostic: dict[str, Any] = found
        return diagnostic


@dataclass(frozen=True, slots=True, kw_only=True)
class Digits:
    """The example's products, built once."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def evaluate(
        self,
        *arguments: str,
        data: str = str(DATA),
        profile: str = "digits-m55",
        file: Path | None = None,
    ) -> Done:
        """Evaluate with --json."""
        self.capsys.readouterr()
        file = file or DIGITS / f"{profile}.toml"
        code = run(
            [
                *("evaluate", str(file), "--json", "--no-lock"),
                *("--out", str(self.folder / profile), "--data", data, *arguments),
            ]
        )
        said = self.capsys.readouterr()
        return Done(code=code, out=said.out, err=said.err)

    def good(self, *arguments: str, data: str = str(DATA)) -> dict[str, Any]:
        """The result of an evaluation that succeeds."""
        done = self.evaluate(*arguments, data=data)
        assert done.code == 0, done.out + done.err
        return done.document


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build folders."""
    need_toolchain("host", InstalledToolchains().name_for_host())
    return tmp_path_factory.mktemp("digits")


@pytest.fixture
def digits(folder: Path, capsys: pytest.CaptureFixture[str]) -> Digits:
    """The products of the example."""
    return Digits(folder=folder, capsys=capsys)


@pytest.fixture
def loaders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A current folder, in which a module with functions may be written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield tmp_path / "digit_loaders.py"
    sys.modules.pop("digit_loaders", None)


def test_rounded_weights_are_compared_with_those_of_the_program(
    digits: Digits, tmp_path: Path
) -> None:
    """Weights of 4 bits, without --reference; labels are not needed either."""
    profile = (DIGITS / "digits-m55.toml").read_text()
    profile = profile.replace('"digits_int8.pte"', f'"{DIGITS / "digits_int8.pte"}"')
    assert profile.count('load = "prelinked"\n') == 1
    rounded = tmp_path / "digits4.toml"
    rounded.write_text(
        profile.replace('load = "prelinked"\n', 'load = "prelinked"\n[models.weights]\nbits = 4\n')
    )
    images = np.load(DATA)["inputs"][898:]
    np.savez(tmp_path / "images.npz", inputs=images)
    data = str(tmp_path / "images.npz")
    done = digits.evaluate(data=data, profile="digits4", file=rounded)
    assert done.code == 0, done.err
    reference = done.document["reference"]
    assert reference["name"].endswith("digits_int8.pte")
    assert 870 < reference["same_class"] < len(images)
    assert 18 < reference["sqnr_db"] < 30
    plain = digits.evaluate(data=data)
    assert plain.problem("bad-data")["message"].endswith("nothing to compare with")


def test_all_digits_on_the_host(digits: Digits) -> None:
    found = digits.good("--reference", str(FLOAT), "--layers", "16")
    assert (found["on"], found["samples"]) == ("host", COUNT)
    assert found["metric"]["right"] == RIGHT
    assert found["metric"]["value"] == RIGHT / COUNT
    with np.load(DATA) as data:
        counts = np.bincount(data["labels"])
    confusion = np.array(found["confusion"])
    np.testing.assert_array_equal(confusion.sum(axis=1), counts)
    assert np.trace(confusion) == RIGHT
    assert found["reference"]["metric"]["right"] == RIGHT
    assert found["reference"]["same_class"] == COUNT - 1
    assert found["reference"]["sqnr_db"] > 35
    layers = found["layers"]["layers"]
    convolutions = [x for x in layers if "conv2d" in x["operator"]]
    # The last activation's numbers are copied once more in the float program.
    assert [x["reference_operator"] for x in convolutions] == [
        "aten::relu.out",
        "aten::relu.out",
        "dim_order_ops::_to_dim_order_copy.out",
    ]
    assert all(x["error"] < 0.03 for x in convolutions)
    assert found["layers"]["first_large"] is None
    margins = [sample["error"] for sample in found["worst"]]
    assert margins == sorted(margins, reverse=True)
    assert all(sample["label"] != sample["answer"] for sample in found["worst"])


def test_a_profile_for_the_host_is_run_as_it_is(digits: Digits) -> None:
    done = digits.evaluate("--samples", "898:", profile="digits-float")
    assert done.code == 0, done.err
    assert done.document["metric"]["right"] == 867
    done = digits.evaluate("--emulator", profile="digits-float")
    assert done.problem("usage")["message"] == "--emulator is for profiles with a board"


def test_an_evaluation_goes_on_where_it_ended(digits: Digits, tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    arguments = ("--samples", "60", "--results", str(kept))
    whole = digits.good(*arguments)
    lines = kept.read_bytes()
    parts = lines.splitlines(keepends=True)
    assert len(parts) == 61
    # A kill left 20 samples and a part of one.
    kept.write_bytes(b"".join(parts[:21]) + parts[21][:30])
    done = digits.evaluate(*arguments, "--resume")
    assert "20 samples are known" in done.err
    assert done.document == whole
    assert kept.read_bytes() == lines
    done = digits.evaluate(*arguments, "--resume")
    assert "60 samples are known" in done.err
    assert done.document == whole


def test_samples_that_changed_are_run_again(digits: Digits, tmp_path: Path) -> None:
    with np.load(DATA) as data:
        inputs, labels = data["inputs"][:30], data["labels"][:30]
    file, kept = tmp_path / "d.npz", tmp_path / "kept.jsonl"
    np.savez(file, inputs=inputs, labels=labels)
    arguments = ("--results", str(kept), "--resume")
    digits.good(*arguments, data=str(file))
    inputs[12] = 0
    np.savez(file, inputs=inputs, labels=labels)
    done = digits.evaluate(*arguments, data=str(file))
    assert "the data changed from sample 12 on" in done.err
    assert done.document == digits.good("--results", str(kept), data=str(file))
    other = kept.read_bytes().replace(b'"firmware": "', b'"firmware": "0')
    kept.write_bytes(other)
    done = digits.evaluate(*arguments, data=str(file))
    assert "of another firmware" in done.err
    assert done.code == 0


def test_the_same_digits_in_every_form(digits: Digits, tmp_path: Path, loaders: Path) -> None:
    expected = digits.good("--samples", "25")
    with np.load(DATA) as data:
        inputs, labels = data["inputs"][:25], data["labels"][:25]
    arrays, archives = tmp_path / "arrays", tmp_path / "archives"
    for number, (image, label) in enumerate(zip(inputs, labels, strict=True)):
        for form in (arrays, archives):
            form.mkdir(exist_ok=True)
        np.save(arrays / f"{number}.npy", image[0].astype(np.float64))
        np.savez(archives / f"{number}.npz", input0=image, label=label)
    lines = "".join(f"{number},{label}\n" for number, label in enumerate(labels))
    (arrays / "labels.csv").write_text(f"file,label\n{lines}")
    loaders.write_text(
        "import numpy as np\n"
        f"data = np.load({str(DATA)!r})\n"
        "def samples():\n"
        "    print('to stderr')\n"
        "    yield from zip(data['inputs'][:25], data['labels'])\n"
        "def right(outputs, labels):\n"
        "    return sum(o.argmax() == n for o, n in zip(outputs, labels))\n"
    )
    for data_set in (str(arrays), str(archives), "digit_loaders:samples"):
        found = digits.good(data=data_set)
        for key in ("metric", "confusion", "samples"):
            assert found[key] == expected[key]
    own = digits.good("--metric", "digit_loaders:right", data="digit_loaders:samples")
    assert own["metric"]["value"] == expected["metric"]["right"]


def test_all_digits_from_a_csv_file(digits: Digits, tmp_path: Path) -> None:
    with np.load(DATA) as data:
        images, labels = data["inputs"].reshape(COUNT, 64), data["labels"]
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    header = ",".join(["label", *names])
    file = tmp_path / "digits.csv"
    rows = np.column_stack([labels, images])
    np.savetxt(file, rows, "%d", delimiter=",", header=header, comments="")
    found = digits.good(data=str(file))
    assert found["metric"]["right"] == RIGHT
    assert found["confusion"] == digits.good()["confusion"]
    # Without names, and with names of classes.
    words = ["zero", *(f"{n}th" for n in range(1, 10))]
    lines = [f"{','.join(map(str, row[1:]))},{words[row[0]]}" for row in rows]
    file.write_text("\n".join(lines))
    named = digits.good("--classes", ",".join(words), data=str(file))
    assert named["confusion"] == found["confusion"]
    assert named["classes"] == words
    # Columns that do not fill the input, and a column that there is not.
    file.write_text("\n".join(f"1,{line}" for line in lines[:3]))
    problem = digits.evaluate("--labels", "66", data=str(file)).problem("bad-data")
    assert problem["where"]["file"] == f"{file}, sample 0"
    assert [note["text"] for note in problem["notes"]] == [
        *("float64 [65]", "float32 [1, 1, 8, 8], 64 numbers")
    ]
    problem = digits.evaluate("--labels", "67", data=str(file)).problem("bad-data")
    assert problem["message"] == "there is no column 67"


def test_digits_as_images_and_as_columns_of_datasets(digits: Digits, tmp_path: Path) -> None:
    with np.load(DATA) as data:
        images, labels = data["inputs"][:25, 0], data["labels"][:25]
    files = []
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        file = tmp_path / "images" / str(label) / f"{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)
        files.append({"bytes": file.read_bytes(), "path": file.name})
    expected = digits.good("--samples", "25")
    found = digits.good("--pixels", "0,255", data=str(tmp_path / "images"))
    assert found["metric"] == expected["metric"]
    assert found["confusion"] == expected["confusion"]
    # A third of the values.
    dark = digits.good("--pixels", "0,85", data=str(tmp_path / "images"))
    assert dark["metric"]["right"] < expected["metric"]["right"]
    saved = tmp_path / "saved"
    saved.mkdir()
    for content, features in (
        ({"image": files}, {"image": {"_type": "Image"}}),
        ({"image": images.tolist()}, {"image": {"_type": "Array2D"}}),
    ):
        batch = pa.record_batch({**content, "digit": labels})
        names = [str(number) for number in range(10)]
        label = {"digit": {"names": names, "_type": "ClassLabel"}}
        info = json.dumps({"features": {**features, **label}})
        (saved / "dataset_info.json").write_text(info)
        (saved / "state.json").write_text('{"_data_files": [{"filename": "0.arrow"}]}')
        with pa.ipc.new_stream(saved / "0.arrow", batch.schema) as stream:
            stream.write_batch(batch)
        is_image = features["image"] == {"_type": "Image"}
        pixels = ("--pixels", "0,255") if is_image else ()
        assert digits.good(*pixels, data=str(saved))["metric"] == expected["metric"]


def test_options_for_other_forms_of_data(digits: Digits, tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    np.save(folder / "0.npy", np.zeros((8, 8)))
    np.save(folder / "labels.npy", np.zeros(1))
    problem = digits.evaluate("--labels", "y", data=str(folder)).problem("usage")
    assert problem["message"] == ("--inputs and --labels require data with named arrays or columns")
    problem = digits.evaluate("--pixels", "0,255", data=str(folder)).problem("usage")
    assert problem["message"] == "--pixels requires images"
    with np.load(DATA) as data:
        np.savez(tmp_path / "d.npz", inputs=data["inputs"][:3], digit=data["labels"][:3])
    file = str(tmp_path / "d.npz")
    problem = digits.evaluate(data=file).problem("bad-data")
    assert problem["message"] == "there is nothing to compare with"
    (note,) = problem["notes"]
    assert note["text"].endswith("; there are digit, inputs")
    assert "--labels" in problem["hint"]
    assert digits.good("--labels", "digit", data=file)["metric"]["right"] == 3


def test_inputs_and_outputs_that_are_integers(digits: Digits, tmp_path: Path) -> None:
    """The int8 network without its first and last call, with their scales by hand."""
    data = (DIGITS / "digits_int8.pte").read_bytes()
    program = read_program(data, file="digits_int8.pte")
    (method,) = program.methods
    first, *inner, last = method.instructions
    assert isinstance(first, KernelCall)
    assert isinstance(last, KernelCall)
    scales = []
    for call in (first, last):
        scale, zero_point = (method.values[index] for index in call.args[1:3])
        assert isinstance(scale, DoubleValue)
        assert isinstance(zero_point, IntValue)
        scales.append(f"{scale.value!r},{zero_point.value}")
    bare = replace(
        method,
        inputs=(first.args[-1],),
        outputs=(last.args[0],),
        instructions=tuple(inner),
        container=None,
    )
    made = write_program(replace(program, methods=(bare,)))
    (tmp_path / "digits_int8.pte").write_bytes(bytes(made))
    profile = shutil.copy(DIGITS / "digits-m55.toml", tmp_path / "bare.toml")
    arguments = ("--samples", "40", "--out", str(tmp_path / "out"))
    known = ("--input-quant", scales[0])
    whole = digits.good("--samples", "40", "--reference", str(FLOAT))
    done = digits.evaluate(*arguments, file=Path(profile))
    problem = done.problem("bad-data")
    assert problem["message"] == "the sample has the wrong dtype for the method"
    assert "--input-quant SCALE,ZERO_POINT" in problem["hint"]
    done = digits.evaluate(
        *(*arguments, *known, "--output-quant", scales[1], "--reference", str(FLOAT)),
        file=Path(profile),
    )
    found = done.document
    assert found["metric"] == whole["metric"]
    for key in ("same_class", "max_abs_error", "sqnr_db"):
        assert found["reference"][key] == pytest.approx(whole["reference"][key])


def test_a_bound_that_is_missed(digits: Digits) -> None:
    arguments = ("--samples", "898:")
    assert digits.good(*arguments, "--at-least", "0.964")["metric"]["right"] == 867
    done = digits.evaluate(*arguments, "--at-least", "0.97")
    assert done.code == 10
    assert done.document["metric"]["right"] == 867
    assert "error[missed-accuracy]: top1 of digits.forward is 0.964405" in done.err
    assert "expected: at least 0.97" in done.err
    assert digits.evaluate(*arguments, "--at-most", "0.9").code == 10
    assert (
        "hint: top1 is a share: 95 % is 0.95" in digits.evaluate(*arguments, "--at-least", "95").err
    )


def test_data_that_are_refused(digits: Digits, tmp_path: Path) -> None:
    with np.load(DATA) as data:
        inputs, labels = data["inputs"][:5], data["labels"][:5]
    nan = inputs.astype(np.float32)
    nan[3, 0, 1, 1] = np.nan
    for arrays, place, message in (
        ({"inputs": nan, "labels": labels}, ", sample 3", "not a number (NaN)"),
        ({"inputs": inputs[:, :, 1:], "labels": labels}, ", sample 0", "wrong shape"),
        ({"inputs": inputs}, "", "there is nothing to compare with"),
        ({"inputs": inputs, "labels": labels + 9}, ", sample 1", "no such class: 10"),
        ({"inputs": inputs.astype("c8"), "labels": labels}, ", sample 0", "wrong dtype"),
    ):
        file = tmp_path / "d.npz"
        np.savez(file, **arrays)
        found = digits.evaluate(data=str(file)).problem("bad-data")
        assert message in found["message"]
        assert found["where"]["file"] == f"{file}{place}"
        assert found["hint"]
    empty = tmp_path / "empty"
    empty.mkdir()
    found = digits.evaluate(data=str(empty)).problem("bad-data")
    assert found["message"] == "the folder has no samples"
    found = digits.evaluate(data=str(tmp_path / "none")).problem("bad-data")
    assert found["message"] == "no such data"
    found = digits.evaluate("--samples", "5000:").problem("bad-data")
    assert found["message"] == "there are no samples"


def test_exceptions_of_functions_are_named_as_the_users(digits: Digits, loaders: Path) -> None:
    loaders.write_text(
        "import numpy as np\n"
        "def raising():\n"
        "    yield np.zeros((8, 8)), 0\n"
        "    raise KeyError('lost')\n"
        "def scores(outputs, labels):\n"
        "    return {}\n"
        "def nothing():\n"
        "    return None\n"
        "calls = []\n"
        "def shuffled():\n"
        "    calls.append(0)\n"
        "    yield np.full((8, 8), len(calls)), 0\n"
    )
    done = digits.evaluate("--reference", str(FLOAT), data="digit_loaders:shuffled")
    message = "the data changed between two reads"
    assert done.problem("bad-data")["message"] == message
    found = digits.evaluate(data="digit_loaders:raising").problem("user-code")
    assert found["message"] == "digit_loaders:raising failed"
    assert found["where"]["line"] == 4
    assert {"label": "found", "text": "KeyError: 'lost'"} in found["notes"]
    found = digits.evaluate(data="digit_loaders:nothing").problem("user-code")
    assert found["message"] == "digit_loaders:nothing failed"
    for data in ("digit_loaders:absent", "no_such_module:f"):
        found = digits.evaluate(data=data).problem("user-code")
        assert found["message"] == f"{data} cannot be imported"
    found = digits.evaluate("--metric", "digit_loaders:scores", "--samples", "3").problem(
        "user-code"
    )
    assert found["message"] == "digit_loaders:scores failed"


def test_references_that_are_refused(digits: Digits, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.pte"
    damaged.write_bytes(FLOAT.read_bytes()[:5000])
    assert digits.evaluate("--reference", str(damaged)).code == 4
    missing = str(tmp_path / "missing.pte")
    digits.evaluate("--reference", missing).problem("unreadable-model")
    digits.evaluate("--reference", str(DATA)).problem("usage")
    digits.evaluate("--layers", "3").problem("usage")
    other = str(ROOT / "examples" / "models" / "kws_dscnn_fp32.pte")
    found = digits.evaluate("--reference", other, "--samples", "2").problem("bad-data")
    assert found["message"] == "the sample has the wrong shape for the method"


def test_an_evaluation_that_is_killed_goes_on(digits: Digits, tmp_path: Path) -> None:
    kept, data = tmp_path / "kept.jsonl", tmp_path / "data"
    data.mkdir()
    shutil.copy(DATA, data / "digits.npz")
    (data / "slow_digits.py").write_text(
        "import os, signal, time\n"
        "import numpy as np\n"
        "data = np.load('digits.npz')\n"
        "def samples():\n"
        "    yield from zip(data['inputs'][:40], data['labels'])\n"
        "def killed(outputs, labels):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [
        *(sys.executable, "-m", "orchestrator", "evaluate", "--json", "--no-lock"),
        *(str(DIGITS / "digits-m55.toml"), "--out", str(digits.folder / "digits-m55")),
        *("--data", "slow_digits:samples", "--results", str(kept)),
    ]
    killed = subprocess.run(
        [*command, "--metric", "slow_digits:killed"], cwd=data, capture_output=True, check=False
    )
    assert killed.returncode == -9
    done = subprocess.run(
        [*command, "--resume"], cwd=data, capture_output=True, text=True, check=True
    )
    assert "40 samples are known" in done.stderr
    assert json.loads(done.stdout)["metric"] == digits.good("--samples", "40")["metric"]


def test_a_missing_class_shifts_no_labels(digits: Digits, tmp_path: Path) -> None:
    with np.load(DATA) as data:
        rows = data["inputs"][:40].reshape(40, -1).tolist()
        names = [f"c{label}" for label in data["labels"][:40]]
    lines = [",".join([*map(str, row), name]) for row, name in zip(rows, names, strict=True)]
    table = tmp_path / "digits.csv"
    table.write_text("\n".join(line for line in lines if not line.endswith("c3")))
    found = digits.evaluate(data=str(table)).problem("bad-data")
    assert found["message"] == "there are 9 classes, and the output has 10"
    every = ",".join(f"c{n}" for n in range(10))
    done = digits.evaluate("--classes", every, data=str(table))
    assert done.code == 0, done.err
    assert done.document["metric"]["value"] > 0.9


def test_results_do_not_replace_other_files(digits: Digits, tmp_path: Path) -> None:
    kept = tmp_path / "profile.toml"
    kept.write_text("schema = 1\n")
    done = digits.evaluate("--samples", ":9", "--results", str(kept))
    assert "would write over" in done.problem("usage")["message"]
    assert kept.read_text() == "schema = 1\n"
