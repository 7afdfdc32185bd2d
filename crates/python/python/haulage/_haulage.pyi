from pathlib import Path
from typing import Optional

from ._errors import Failure
from ._options import Options, TreeOptions

class Progress:
    """The progress of a copy."""

    @property
    def entries(self) -> int:
        """Finished entries, copied or not, without directories."""
    @property
    def bytes(self) -> int:
        """Bytes of regular files and streams that were copied: data moved or shared, and holes."""
    @property
    def skipped_bytes(self) -> int:
        """Bytes of regular files that are not copied."""
    @property
    def unwritten_bytes(self) -> int:
        """Bytes that were copied and are not on the medium yet, at most."""
    @property
    def total_entries(self) -> Optional[int]:
        """Entries to copy; None until all are counted."""
    @property
    def total_bytes(self) -> Optional[int]:
        """Bytes to copy; None until all are counted."""
    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
    @property
    def current(self) -> list[Path]:
        """The destinations of the files that are being copied now."""

def copy_file(
    src: bytes, dst: bytes, attributes: str, follows: bool, keywords: Optional[Options]
) -> Optional[Failure]: ...
def copy_tree(src: bytes, dst: bytes, tree: TreeOptions, keywords: Options) -> list[Failure]: ...
def sync_file_system(dir: bytes) -> Optional[Failure]: ...
