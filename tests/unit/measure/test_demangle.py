"""Names of C++ symbols, against what binutils makes of them."""

from __future__ import annotations

import gzip
import re

import pytest

from orchestrator.measure.owner import demangle
from tests.unit.measure.measure_cases import DATA

RECORDED = [
    line.split("\t")
    for line in gzip.decompress((DATA / "symbols.txt.gz").read_bytes()).decode().splitlines()
]
"""All C++ symbols of a product with every operator; made by make_symbols.py."""


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("memcpy", "memcpy"),
        ("_Z16orch_applicationPKcS0_", "orch_application"),
        ("_ZN4orch12kKernelTableE", "orch::kKernelTable"),
        (
            "_ZN4orch8portable12_GLOBAL__N_18add_sameIfEENS_5ErrorERKNS_6TensorE",
            "orch::portable::(anonymous namespace)::add_same<float>",
        ),
        ("_ZNK4orch6Tensor6nbytesEv", "orch::Tensor::nbytes"),
        ("_ZNK4orch10TensorListixEi", "orch::TensorList::operator[]"),
        ("_ZN4orchdlEPv", "orch::operator delete"),
        ("_ZN4orch7StridesC2ERKNS_6TensorE", "orch::Strides::Strides"),
        ("_ZN4orch4SpanIhED1Ev", "orch::Span<unsigned char>::~Span"),
        ("_ZN4orch8FbReader4itemERKNS_8FbVectorEj.isra.0", "orch::FbReader::item.isra.0"),
        ("_Z3addIiEvT_.part.0.cold", "add<int>.part.0.cold"),
        (
            "_ZZN4orch11semihosting15run_applicationEvE4line",
            "orch::semihosting::run_application()::line",
        ),
        ("_ZZ3addvE5total_0", "add()::total"),
        (
            "_ZN4orch13resize_outputIJNS_6TensorES1_EEENS_5ErrorERS1_DpRKT_",
            "orch::resize_output<orch::Tensor, orch::Tensor>",
        ),
        ("_ZN4orch6switchILj64ELb1ELin3EEEvv", "orch::switch<64u, true, -3>"),
        ("_ZN4orch5tableIPKcRiOdE3getEv", "orch::table<char const*, int&, double&&>::get"),
        ("_ZN4orch3runIFviEEEvPT_", "orch::run<void (int)>"),
        ("_ZN4orch1aIXadL_Z1bEEEEv", "orch::a<&b>"),
        ("_ZN4orch3FooB5cxx113barEv", "orch::Foo[abi:cxx11]::bar"),
        (
            "_ZZN4orch8portable8tanh_outERKNS_4ArgsEENKUlT_E_clIfEEDaS4_",
            "orch::portable::tanh_out(orch::Args const&)::'lambda'(auto)::operator()<float>",
        ),
        ("_ZGVZN4orch5countEvE5total", "guard variable for orch::count()::total"),
        ("_ZTVN4orch6TensorE", "vtable for orch::Tensor"),
        ("_ZL5kSize", "kSize"),
        ("_ZZN4orch4nameEvEs", "orch::name()::string literal"),
        ("_ZN4orch3mapIZNS_3runEvE4TypeEEvT_", "orch::map<orch::run()::Type>"),
        ("_ZSt4swap", "std::swap"),
        ("_ZSt4swapIiEvRT_S1_", "std::swap<int>"),
    ],
)
def test_demangled(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


@pytest.mark.parametrize(
    "symbol",
    [
        "_Z",
        "_Z\0",
        "_ZN4orch",
        "_ZN4orch19too_shortE",
        "_ZN99orchE",
        "_ZNIiE1aE",
        "_ZN4orch1aILi",
        "_ZN" + "9" * 5000 + "aE",
        "_ZN1aI" + "P" * 1_000_000 + "iE1bE",
    ],
)
def test_what_is_no_name_stays_mangled(symbol: str) -> None:
    assert demangle(symbol) == symbol


def test_every_symbol_of_a_wide_product() -> None:
    assert len(RECORDED) > 600
    wrong = []
    for symbol, expected in RECORDED:
        suffix = symbol[len(symbol.partition(".")[0]) :]
        name = demangle(symbol)
        as_recorded = expected.replace("> >", ">>") + suffix
        if "{lambda" in expected:
            name, as_recorded = _without_lambdas(name), _without_lambdas(as_recorded)
        if name != as_recorded:
            wrong.append((symbol, name))
    assert wrong == []


def _without_lambdas(name: str) -> str:
    """What both demanglers agree on: they write local functions in different ways.

    LLVM adds the return types of templates around, binutils resolves the parameters of
    generic lambdas and numbers lambdas.
    """
    name = name.replace("(anonymous namespace)", "anonymous").replace("> >", ">>")
    while (shorter := re.sub(r"\([^()]*\)", "", name)) != name:
        name = shorter
    name = re.sub(r"\{lambda#\d+\}|'lambda\d*'", "lambda", name)
    name = re.sub(r"(?<![\w:])(auto|void|orch::Error) (?=orch::)", "", name)
    return name.replace(" const::", "::").replace("auto ", "")
