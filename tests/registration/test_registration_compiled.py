"""Compiled kernels on the disk: processes that start together never mix them up."""

from __future__ import annotations

import threading

import pytest
from numba.core.caching import IndexDataCacheFile

from breastmorph.registration.compiled import share_compiled_code


@pytest.fixture(autouse=True)
def shared():
    share_compiled_code()
    share_compiled_code()  # twice is once


def test_many_at_once_keep_every_function_apart(tmp_path):
    start = threading.Barrier(12)

    def save(key):
        start.wait()
        IndexDataCacheFile(str(tmp_path), "kernels.f", "stamp").save(key, f"code of {key}")

    threads = [threading.Thread(target=save, args=(key,)) for key in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache = IndexDataCacheFile(str(tmp_path), "kernels.f", "stamp")
    assert [cache.load(key) for key in range(12)] == [f"code of {key}" for key in range(12)]


def test_a_process_killed_while_saving_leaves_no_older_version_behind(tmp_path, monkeypatch):
    IndexDataCacheFile(str(tmp_path), "kernels.f", "old source").save("key", "old code")
    new = IndexDataCacheFile(str(tmp_path), "kernels.f", "new source")

    def killed(name, data):
        raise KeyboardInterrupt

    monkeypatch.setattr(new, "_save_data", killed)
    with pytest.raises(KeyboardInterrupt):
        new.save("key", "new code")
    again = IndexDataCacheFile(str(tmp_path), "kernels.f", "new source")
    assert again.load("key") is None  # it will be compiled again
    again.save("key", "new code")
    assert again.load("key") == "new code"
