"""Arrays as kernels see them: a pointer and a shape.

numba counts references to arrays wherever a function passes one on, which takes longer than most kernels. The caller of
a kernel holds its arrays, so that kernels need not count. `view` turns the arrays of an argument into views.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import (
    intrinsic,
    lower_builtin,
    make_attribute_wrapper,
    models,
    register_model,
    type_callable,
)


class View(types.Type):
    """The type of a view of a contiguous array."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"View({dtype}, {ndim})")


@register_model(View)
class ViewModel(models.StructModel):
    """A view is a pointer and a shape."""

    def __init__(self, dmm: Any, fe_type: Any) -> None:
        shape = types.UniTuple(types.intp, fe_type.ndim)
        super().__init__(dmm, fe_type, [("data", types.CPointer(fe_type.dtype)), ("shape", shape)])


make_attribute_wrapper(View, "shape", "shape")


def _view_type(kind: Any) -> Any:
    """Return the type of an argument whose arrays are views."""
    if isinstance(kind, types.Array):
        return View(kind.dtype, kind.ndim)
    if isinstance(kind, types.BaseTuple):
        fields = tuple(map(_view_type, kind.types))
        return types.BaseTuple.from_types(fields, getattr(kind, "instance_class", None))
    return kind


def _view_value(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the value of an argument whose arrays are views."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        struct = ir.Constant(context.get_value_type(_view_type(kind)), ir.Undefined)
        struct = builder.insert_value(struct, array.data, 0)
        return builder.insert_value(struct, array.shape, 1)
    if isinstance(kind, types.BaseTuple):
        fields = [
            _view_value(context, builder, field, builder.extract_value(value, i)) for i, field in enumerate(kind.types)
        ]
        return context.make_tuple(builder, _view_type(kind), fields)
    return value


@intrinsic
def view(typingctx: Any, argument: Any) -> Any:
    """Return an array, or a named tuple of arrays and numbers, with views in place of arrays."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _view_value(context, builder, signature.args[0], arguments[0])

    return _view_type(argument)(argument), codegen


@intrinsic
def flat(typingctx: Any, array: Any) -> Any:
    """Return a view of all items of a view, in one dimension."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        size = builder.extract_value(arguments[0], [1, 0])
        for axis in range(1, signature.args[0].ndim):
            size = builder.mul(size, builder.extract_value(arguments[0], [1, axis]))
        struct = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
        struct = builder.insert_value(struct, builder.extract_value(arguments[0], 0), 0)
        return builder.insert_value(struct, size, [1, 0])

    return View(array.dtype, 1)(array), codegen


def _indices(index: Any) -> tuple[Any, ...]:
    """Return the types of the indices in an index of this type; none, unless all are integers."""
    indices = tuple(index.types) if isinstance(index, types.BaseTuple) else (index,)
    return indices if all(isinstance(kind, types.Integer) for kind in indices) else ()


@type_callable(operator.getitem)
def _type_of_item(context: Any) -> Any:
    def typer(view: Any, index: Any) -> Any:
        if not isinstance(view, View) or not 0 < len(_indices(index)) <= view.ndim:
            return None
        n_left = view.ndim - len(_indices(index))
        return View(view.dtype, n_left) if n_left else view.dtype

    return typer


@type_callable(operator.setitem)
def _type_of_setting(context: Any) -> Any:
    def typer(view: Any, index: Any, value: Any) -> Any:
        return types.none if isinstance(view, View) and len(_indices(index)) == view.ndim else None

    return typer


def _pointer(context: Any, builder: Any, kind: Any, value: Any, index_kind: Any, index: Any) -> Any:
    """Return a pointer to an item, or to the first item of a row."""
    if isinstance(index_kind, types.BaseTuple):
        parts = [(k, builder.extract_value(index, i)) for i, k in enumerate(index_kind.types)]
    else:
        parts = [(index_kind, index)]
    offset = None
    for axis in range(kind.ndim):
        if offset is not None:
            offset = builder.mul(offset, builder.extract_value(value, [1, axis]))
        if axis < len(parts):
            part = context.cast(builder, parts[axis][1], parts[axis][0], types.intp)
            offset = part if offset is None else builder.add(offset, part)
    return builder.gep(builder.extract_value(value, 0), [offset])


@lower_builtin(operator.getitem, View, types.Any)
def _get(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, index_kind = signature.args
    pointer = _pointer(context, builder, kind, arguments[0], index_kind, arguments[1])
    if signature.return_type == kind.dtype:
        return context.unpack_value(builder, kind.dtype, pointer)
    struct = ir.Constant(context.get_value_type(signature.return_type), ir.Undefined)
    struct = builder.insert_value(struct, pointer, 0)
    first = kind.ndim - signature.return_type.ndim
    for axis in range(first, kind.ndim):
        struct = builder.insert_value(struct, builder.extract_value(arguments[0], [1, axis]), [1, axis - first])
    return struct


@lower_builtin(operator.setitem, View, types.Any, types.Any)
def _set(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind, index_kind, value_kind = signature.args
    pointer = _pointer(context, builder, kind, arguments[0], index_kind, arguments[1])
    context.pack_value(builder, kind.dtype, context.cast(builder, arguments[2], value_kind, kind.dtype), pointer)
    return context.get_dummy_value()
