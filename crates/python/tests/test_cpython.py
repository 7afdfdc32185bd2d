"""CPython's own tests of shutil's copy functions, with haulage installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

from conftest import skip

CLASSES = ["TestCopyTree", "TestCopy", "TestCopyFile", "TestMove", "TestZeroCopySendfile"]
# Python 3.14 adds it.
CLASSES_OF_SOME_VERSIONS = ["TestZeroCopyCopyFileRange"]

# Those that replace functions of Python by others, which haulage does not call: open(), os.chmod(),
# os.sendfile().
CANNOT = {
    "TestCopyFile.test_w_dest_close_fails": "open",
    "TestCopyFile.test_w_dest_open_fails": "open",
    "TestCopyFile.test_w_source_close_fails": "open",
    "TestCopyTree.test_copytree_winerror": "os.chmod",
    "TestZeroCopySendfile.test_blocksize_arg": "os.sendfile",
    "TestZeroCopySendfile.test_unhandled_exception": "os.sendfile",
}

RUN = """
import json, sys, unittest
import haulage
haulage.install()
from test import test_shutil
classes = [getattr(test_shutil, name, None) for name in sys.argv[1:]]
suites = [unittest.defaultTestLoader.loadTestsFromTestCase(one) for one in classes if one]
result = unittest.TextTestRunner(stream=sys.stderr).run(unittest.TestSuite(suites))
import shutil
assert shutil.copytree is haulage.copytree
name = lambda test: ".".join(test.id().split(".")[-2:])
print(json.dumps({
    "run": result.testsRun,
    "skipped": len(result.skipped),
    "failed": [name(test) for test, _ in result.failures + result.errors],
}))
"""


def test_copy_tests_of_cpython(tmp_path: Path) -> None:
    if importlib.util.find_spec("test.test_shutil") is None:
        skip("this Python has no test package (Debian: libpython3-testsuite)")
    command = [sys.executable, "-c", RUN, *CLASSES, *CLASSES_OF_SOME_VERSIONS]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    failed = set(result["failed"])
    assert failed <= set(CANNOT), done.stderr
    assert result["run"] - result["skipped"] - len(failed) >= 60
    print(f"{result['run']} run, {result['skipped']} skipped by CPython, {len(failed)} cannot pass")
