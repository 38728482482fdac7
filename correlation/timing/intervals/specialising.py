"""Operations on a search that each kind of search decides in its own way.

Problem. Events with intervals and events with histograms are searched by the same traversals; only
the decision of a pair differs. A traversal is one kernel, compiled once for each class of searches.

Algorithm. A search is a NamedTuple. An operation is a `functools.singledispatch` function on it,
which runs where kernels are plain Python (NUMBA_DISABLE_JIT=1). `specialise` adds the operation of
one class of searches, there and, as an overload, for compiled kernels.

Cost. None at run time: the type of the search decides when a kernel is compiled.
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
    """Let an operation run a kernel for one class of searches.

    Parameters
    ----------
    operation : singledispatch function
        Dispatches on its first argument.
    search : type
        A NamedTuple class.
    kernel : jitted function
        With the parameters of the operation.
    """
    operation.register(search, kernel)

    def choose(first: types.Type, *_others: types.Type) -> Callable[..., Any] | None:
        if getattr(first, "instance_class", None) is search:
            implementation: Callable[..., Any] = kernel.py_func  # type: ignore[attr-defined]
            return implementation
        return None

    # Not strict: the parameters of `choose` differ from those of the kernel. Inlined by force: a
    # call passes every array of the search, which costs more than most operations.
    overload(operation, strict=False, jit_options={"forceinline": True})(choose)


def refuse(given: object) -> NoReturn:
    """Raise the error of an operation that is not specialised for what it is given.

    Raises
    ------
    TypeError
        Always.
    """
    raise TypeError(
        f"first argument: no operation for {type(given).__name__}; specialise the operation"
    )
