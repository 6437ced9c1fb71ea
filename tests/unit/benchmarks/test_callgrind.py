"""Instructions by function, from a file written by hand as callgrind writes them."""

from harness.callgrind import Function, own_instructions, per_pass

TEXT = """\
events: Ir
summary: 1045

ob=(1) /usr/lib/libshim.so
fl=(1) shim.cpp
fn=(1) malloc
10 5
fi=(2) inlined.h
+3 2
* 3
cob=(2) /usr/lib/libc.so.6
cfi=(3) malloc.c
cfn=(2) __libc_malloc
calls=7 100
11 1000
12 1

ob=(2)
fl=(3)
fn=(2)
100 20
-4 6
fn=(3) recurse
5 1
fn=(4) recurse'2
6 2
"""


def test_each_function_has_its_own_instructions_only() -> None:
    assert own_instructions(TEXT.splitlines()) == {
        Function("libshim.so", "malloc"): 11,
        Function("libc.so.6", "__libc_malloc"): 26,
        Function("libc.so.6", "recurse"): 3,
    }


def test_the_difference_of_two_runs_is_free_of_what_both_did_once() -> None:
    few = own_instructions(TEXT.splitlines())
    many = own_instructions(TEXT.replace("10 5", "10 25").splitlines())
    assert per_pass(few, many, 4) == {Function("libshim.so", "malloc"): 5.0}
