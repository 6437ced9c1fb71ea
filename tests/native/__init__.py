"""Tests of the native recorder."""
