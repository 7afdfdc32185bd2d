from os import PathLike
from typing import Any, Callable, Iterable, Literal, Optional, TypeVar, Union

from ._haulage import Progress

_Path = Union[str, bytes, PathLike[str], PathLike[bytes]]
_Dst = TypeVar("_Dst", bound=_Path)
_Reflink = Literal["auto", "always", "never"]
_OnProgress = Optional[Callable[[Progress], object]]
_OnReceipt = Optional[Callable[[dict[str, Any]], object]]
_Ignore = Optional[Callable[[Any, list[Any]], Iterable[Any]]]

def copymode(src: _Path, dst: _Path, *, follow_symlinks: bool = True) -> None: ...
def copystat(src: _Path, dst: _Path, *, follow_symlinks: bool = True) -> None: ...
def copyfile(
    src: _Path,
    dst: _Dst,
    *,
    follow_symlinks: bool = True,
    progress: _OnProgress = None,
    verify: bool = False,
    atomic: bool = False,
    durable: bool = False,
    resume: bool = False,
    jobs: Optional[int] = None,
    reflink: _Reflink = "auto",
    receipt: _OnReceipt = None,
) -> _Dst: ...
def copy(
    src: _Path,
    dst: _Dst,
    *,
    follow_symlinks: bool = True,
    progress: _OnProgress = None,
    verify: bool = False,
    atomic: bool = False,
    durable: bool = False,
    resume: bool = False,
    jobs: Optional[int] = None,
    reflink: _Reflink = "auto",
    receipt: _OnReceipt = None,
) -> Union[_Dst, str, bytes]: ...
def copy2(
    src: _Path,
    dst: _Dst,
    *,
    follow_symlinks: bool = True,
    progress: _OnProgress = None,
    verify: bool = False,
    atomic: bool = False,
    durable: bool = False,
    resume: bool = False,
    jobs: Optional[int] = None,
    reflink: _Reflink = "auto",
    receipt: _OnReceipt = None,
) -> Union[_Dst, str, bytes]: ...
def copytree(
    src: _Path,
    dst: _Dst,
    symlinks: bool = False,
    ignore: _Ignore = None,
    copy_function: Callable[..., object] = ...,
    ignore_dangling_symlinks: bool = False,
    dirs_exist_ok: bool = False,
    *,
    progress: _OnProgress = None,
    verify: bool = False,
    atomic: bool = False,
    durable: bool = False,
    resume: bool = False,
    jobs: Optional[int] = None,
    reflink: _Reflink = "auto",
    receipt: _OnReceipt = None,
) -> _Dst: ...
def move(
    src: _Path,
    dst: _Dst,
    copy_function: Callable[..., object] = ...,
    *,
    progress: _OnProgress = None,
    verify: bool = False,
    atomic: bool = False,
    durable: bool = False,
    resume: bool = False,
    jobs: Optional[int] = None,
    reflink: _Reflink = "auto",
    receipt: _OnReceipt = None,
) -> Union[_Dst, str, bytes]: ...
