"""Tests on aarch64 under emulation: `make test-arm`.

`root` makes a root of Debian's arm64 packages, `install` builds the wheel with Debian's cross compiler and installs it
there, `enclosed` runs commands in it under qemu, `run_tests` runs the tests, a file at a time.
"""
