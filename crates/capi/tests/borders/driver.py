"""Copies once by the package `haulage`, and exits with the errno: 200 if the exception has none.

usage: driver.py file|tree SRC DST
"""

import re
import shutil
import sys

import haulage

what, src, dst = sys.argv[1:]
try:
    if what == "file":
        haulage.copyfile(src, dst)
    else:
        haulage.copytree(src, dst, symlinks=True, dirs_exist_ok=True)
except OSError as error:
    number = error.errno
    if isinstance(error, shutil.Error) and isinstance(error.args[0], list):
        found = re.search(r"\[Errno (\d+)\]", error.args[0][0][2])
        number = int(found.group(1)) if found else None
    sys.exit(number or 200)
