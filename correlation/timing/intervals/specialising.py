"""Operations on a search with one implementation per class of searches.

Problem. Events with intervals and events with histograms are searched by the same traversals; only
the decision of a pair differs. A traversal is one kernel, compiled once for each class of searches.

Algorithm. A search is a NamedTuple. An operation is a `functools.singledispatch` function on it,
which runs if kernels are plain Python (NUMBA_DISABLE_JIT=1). `specialise` registers the kernel of
one class of searches with that function and, as an overload, for compiled kernels.

Cost. Zero at run time: numba selects the overload by the type of the search at compile time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from numba.extending import overload

if TYPE_CHECKING:
    from collections.abc import Callable
    from functools import _SingleDispatchCallable

    from numba import types


def specialise(
    operation: _SingleDispatchCallable[Any], search: type, kernel: Callable[..., Any]
) -> None:
    """Register the kernel that an operation runs for one class of searches.

    Parameters
    ----------
    operation : singledispatch function
        The operation, which dispatches on its first argument.
    search : type
        A NamedTuple class.
    kernel : jitted function
        The implementation, with the parameters of the operation.
    """
    operation.register(search, kernel)

    def choose(first: types.Type, *_others: types.Type) -> Callable[..., Any] | None:
        if getattr(first, "instance_class", None) is search:
            implementation: Callable[..., Any] = kernel.py_func  # type: ignore[attr-defined]
            return implementation
        return None

    # Not strict: the parameters of `choose` differ from those of the kernel. Force-inlined: a call
    # passes every array of the search, which costs more than most operations.
    overload(operation, strict=False, jit_options={"forceinline": True})(choose)


def refuse(given: object) -> NoReturn:
    """Raise the error of an operation that is not specialised for its first argument.

    Raises
    ------
    TypeError
        Always.
    """
    raise TypeError(f"argument: {type(given).__name__} is not supported; specialise the operation")
