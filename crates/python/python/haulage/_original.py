"""The functions of ``shutil`` as they were when ``haulage`` was imported."""

from __future__ import annotations

import shutil

NAMES = ("copyfile", "copy", "copy2", "copymode", "copystat", "copytree", "move")

copyfile = shutil.copyfile
copy = shutil.copy
copy2 = shutil.copy2
copymode = shutil.copymode
copystat = shutil.copystat
copytree = shutil.copytree
move = shutil.move
