"""Compiled kernels on the disk: processes that start together never mix them up."""

from __future__ import annotations

import os
import threading

import pytest
from numba.core.registry import CPUDispatcher

from breastmorph.foundation.kernels import KernelIndex, compiled


def test_many_at_once_keep_every_function_apart(tmp_path):
    start = threading.Barrier(12)

    def save(key):
        start.wait()
        KernelIndex(str(tmp_path), "kernels.f", "stamp").save(key, f"code of {key}")

    threads = [threading.Thread(target=save, args=(key,)) for key in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache = KernelIndex(str(tmp_path), "kernels.f", "stamp")
    assert [cache.load(key) for key in range(12)] == [f"code of {key}" for key in range(12)]


def test_a_process_killed_while_saving_leaves_no_older_version_behind(tmp_path, monkeypatch):
    KernelIndex(str(tmp_path), "kernels.f", "old source").save("key", "old code")
    new = KernelIndex(str(tmp_path), "kernels.f", "new source")

    def killed(name, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(new, "_save_data", killed)
    with pytest.raises(KeyboardInterrupt):
        new.save("key", "new code")
    again = KernelIndex(str(tmp_path), "kernels.f", "new source")
    assert again.load("key") is None  # it will be compiled again
    again.save("key", "new code")
    assert again.load("key") == "new code"


def test_without_a_place_for_the_code_it_is_compiled_all_the_same(monkeypatch):
    def read_only(*args, **others):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)  # how numba finds out whether it may write
    with pytest.raises(RuntimeError, match="cannot cache"):
        CPUDispatcher(doubled, {}, {"nopython": True}).enable_caching()
    assert compiled()(doubled)(21.0) == 42.0


def test_code_that_cannot_be_saved_is_not_missed(tmp_path, monkeypatch):
    def full(*args, **others):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    cache = KernelIndex(str(tmp_path), "kernels.f", "stamp")
    cache.save("key", "code")
    monkeypatch.undo()
    assert cache.load("key") is None


def doubled(value):
    return 2.0 * value
