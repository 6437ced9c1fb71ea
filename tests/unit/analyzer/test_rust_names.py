"""Names of Rust functions. The expected ones of the v0 scheme are those of RFC 2603 and of rustc-demangle's tests."""

from __future__ import annotations

import random
import string

import pytest

from tachograph.analyzer.recording.native_names import MAX_NAME, MAX_SYMBOL, plain_name, rust_name, short_name

V0 = {
    "_RNvC6_123foo3bar": "123foo::bar",
    "_RNvCs1234_7mycrate3foo": "mycrate::foo",
    "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_": "cc::spawn::{closure#0}::{closure#0}",
    "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_4iter8iterator8Iterator9rpositionNCNgNpB9_6memchr7memrchr"
    "s_0E0Bb_": "<core::slice::Iter<u8> as core::iter::iterator::Iterator>::rposition::<core::slice::memchr::memrchr"
    "::{closure#1}>::{closure#0}",
    "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_ECs1iopQbuBiw2_3std": "alloc::alloc::"
    "box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>",
    "_RNvMC0INtB2_8MyStructKm8a_E3foo": "<::MyStruct<138>>::foo",
    "_RMC0INtC8arrayvec8ArrayVechKj7b_E": "<arrayvec::ArrayVec<u8, 123>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_8UnsignedKhb_E": "<const_generic::Unsigned<11>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKs98_E": "<const_generic::Signed<152>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_6SignedKanb_E": "<const_generic::Signed<-11>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb0_E": "<const_generic::Bool<false>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_4BoolKb1_E": "<const_generic::Bool<true>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc76_E": "<const_generic::Char<'v'>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKca_E": "<const_generic::Char<'\\n'>>",
    "_RMCs4fqI2P2rA04_13const_genericINtB0_3FooKpE": "<const_generic::Foo<_>>",
    "_RNvNvMCs4fqI2P2rA04_13const_genericINtB4_3FooKpE3foo3FOO": "<const_generic::Foo<_>>::foo::FOO",
    "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y": "utf8_idents::საჭმელად_გემრიელი_სადილი",
    "_RNvYINtC1a4HashFG_RL0_hEuENtC1a5Trait3run": "<a::Hash<fn(&'a u8)> as a::Trait>::run",
    "_RNvCs1_1a1f.llvm.1234": "a::f",
    "_RINvC1a1fPhOtTmETmxERQhSiAyj3_E": "a::f::<*const u8, *mut u16, (u32,), (u32, i64), &&mut u8, [isize], [u64; 3]>",
    "_RINvC1a1fFUKCjEyE": 'a::f::<unsafe extern "C" fn(usize) -> u64>',
}

LEGACY = {
    "_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$::drop::h0123456789abcdef": (
        "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"
    ),
    "core::slice::sort::h0123456789abcdef.llvm.99": "core::slice::sort",
    "polars::f::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef": "polars::f::{{closure}}",
    "std::vector<int>::push_back(int const&)": None,
    "dgemm_kernel": None,
}


@pytest.mark.parametrize(("symbol", "name"), [*V0.items(), *LEGACY.items()])
def test_names(symbol: str, name: str | None) -> None:
    found = rust_name(symbol)
    if symbol.endswith("4CharKca_E"):  # printable() writes it out
        assert found == "<const_generic::Char<'\n'>>"
        return
    assert found == name


def test_what_is_no_name_stays_as_it_is() -> None:
    for symbol in (
        "_R",
        "_RX",
        "_RNvC",
        "_Random_function",
        "_RNvC3fo",
        "_RC99999999a",
        "_R1NvC1a1b",
        "_RB_",
        "_RNvB_1a",
    ):
        assert rust_name(symbol) is None
        assert plain_name(symbol) == symbol


def test_shown_names_have_no_control_characters() -> None:
    assert plain_name("_RINvC1a1fKca_E") == "a::f::<'\\x0a'>"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop", "alloc::vec::Vec<>::drop"),
        ("<polars_core::Frame>::join::<fn(u8) -> u8>", "polars_core::Frame::join::<>"),
        ("core::slice::sort::<u8>::{closure#0}", "core::slice::sort::<>::{closure#0}"),
        ("<&mut dyn a::B as a::C>::run", "a::B::run"),
        ("<&" * 2000, "<&" * 2000),
        ("<a>" * 1000, "<a>" * 1000),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_back_references_end() -> None:
    """Each type holds the one before twice: written out it would have 2^60 parts."""
    text, places = "INvC1a1f", []
    for _ in range(60):
        places.append(len(text))
        if len(places) == 1:
            text += "ThhE"
        else:
            back = _base_62(places[-2])
            text += f"TB{back}B{back}E"
    assert rust_name(f"_R{text}E") is None


def test_depth_is_bounded() -> None:
    assert rust_name("_RINvC1a1f" + "S" * 50 + "hE") == f"a::f::<{'[' * 50}u8{']' * 50}>"
    assert rust_name("_RINvC1a1f" + "S" * 10_000 + "hE") is None
    assert rust_name("_RNv" * MAX_SYMBOL) is None


def test_fuzzed_names_are_read_or_refused() -> None:
    """Whatever the text, a bounded name comes out or none: never an error."""
    draw = random.Random(15)
    whole = [symbol for symbol in V0 if V0[symbol]]
    alphabet = string.ascii_letters + string.digits + "_$.\n\x00é"
    read = 0
    for _ in range(4000):
        letters = list(draw.choice(whole))
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(2, len(letters))
            action = draw.randrange(4)
            if action == 0:
                letters[at] = draw.choice(alphabet)
            elif action == 1:
                letters.insert(at, draw.choice(alphabet))
            elif action == 2 and len(letters) > 4:
                del letters[at]
            else:
                piece = letters[at : at + draw.randrange(20)]
                letters[at:at] = piece * draw.randrange(1, 4)
        name = rust_name("".join(letters))
        assert name is None or len(name) <= MAX_NAME
        read += name is not None
    assert 100 < read < 4000


def _base_62(number: int) -> str:
    digits = string.digits + string.ascii_lowercase + string.ascii_uppercase
    if number == 0:
        return "_"
    number -= 1
    text = digits[number % 62]
    while number := number // 62:
        text = digits[number % 62] + text
    return text + "_"
