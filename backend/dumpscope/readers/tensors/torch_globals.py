"""What the pickle of a tensor file may name, and the inert descriptions those names build.

Nothing is read or allocated here: a pickle becomes `TensorSpec`s that say which stored bytes make which tensor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from dumpscope.errors import TensorError
from dumpscope.readers.tensors.arrays import ELEMENT_TYPES, ElementType
from dumpscope.readers.tensors.pickle_machine import Builder, damaged, no_global
from dumpscope.texts import say

_MAX_TEXT: Final = 64
_MAX_SIZE: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageType:
    """element is None for an untyped storage, whose count is in bytes."""

    name: str
    element: ElementType | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRef:
    """A storage as the pickle names it. count: elements (bytes when untyped).

    view: (first, count) when only this part of the root storage is meant (legacy files)
    """

    key: str
    element: ElementType | None
    device: str
    count: int
    view: tuple[int, int] | None = None

    @property
    def nbytes(self) -> int:
        return self.count * (self.element.size if self.element else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantizer:
    """What whole numbers of a quantized tensor mean: (number - zero_point) * scale.

    dtype: torch's name of the tensor's type; axis: along which scale and zero_point are tensors, None where both are numbers
    """

    dtype: str
    scale: float | TensorSpec
    zero_point: int | TensorSpec
    axis: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A tensor over a storage, not read yet; sizes in elements. quantizer: None for a plain one"""

    storage: StorageRef
    element: ElementType
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    parameter: bool = False
    conj: bool = False
    neg: bool = False
    quantizer: Quantizer | None = None


def storage_ref(saved: Any) -> StorageRef:
    """Storage named by a persistent id; raises TensorError for every other kind of id."""
    if type(saved) is not tuple or not 5 <= len(saved) <= 6 or saved[0] != "storage":
        raise damaged(say("readers.storage_id_no_known_form"))
    _, kind, key, device, count, *rest = saved
    if type(kind) is not StorageType or not _is_text(key) or not _is_text(device) or not _is_size(count):
        raise damaged(say("readers.storage_id_no_known_form"))
    view = rest[0] if rest else None
    part: tuple[int, int] | None = None
    if view is not None:
        if type(view) is not tuple or len(view) != 3 or not _is_size(view[1]) or not _is_size(view[2]):
            raise damaged(say("readers.storage_view_no_known_form"))
        part = (view[1], view[2])
    return StorageRef(key=key, element=kind.element, device=device, count=count, view=part)


def _is_text(value: Any) -> bool:
    return type(value) is str and len(value) <= _MAX_TEXT


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < _MAX_SIZE


def _tensor(
    storage: Any,
    offset: Any,
    shape: Any,
    stride: Any,
    requires_grad: Any,
    _hooks: Any = None,
    metadata: Any = None,
    *,
    element: ElementType | None = None,
) -> TensorSpec:
    if type(storage) is not StorageRef:
        raise damaged(say("readers.tensor_without_storage"))
    element = element or storage.element
    if element is None:
        raise damaged(say("readers.tensor_without_dtype"))
    if type(shape) is not tuple or type(stride) is not tuple or not _is_size(offset):
        raise damaged(say("readers.tensor_without_shape"))
    for size in (*shape, *stride):
        if not _is_size(size):
            raise damaged(say("readers.size_stride_no_tensor_has"))
    flags: Mapping[Any, Any] = metadata if type(metadata) is dict else {}
    return TensorSpec(
        storage=storage,
        element=element,
        offset=offset,
        shape=shape,
        stride=stride,
        requires_grad=requires_grad is True,
        conj=flags.get("conj") is True,
        neg=flags.get("neg") is True,
    )


def _tensor_v3(
    storage: Any,
    offset: Any,
    shape: Any,
    stride: Any,
    requires_grad: Any,
    hooks: Any,
    element: Any,
    metadata: Any = None,
) -> TensorSpec:
    if type(element) is not ElementType:
        raise damaged(say("readers.tensor_without_dtype"))
    return _tensor(storage, offset, shape, stride, requires_grad, hooks, metadata, element=element)


def _npu_tensor(
    storage: Any, offset: Any, shape: Any, stride: Any, requires_grad: Any, hooks: Any, _format: Any = None
) -> TensorSpec:
    """The NPU's memory format describes the device; the storage in the file is already in plain order."""
    return _tensor(storage, offset, shape, stride, requires_grad, hooks)


def _plain_tensor(storage: Any, offset: Any, shape: Any, stride: Any) -> TensorSpec:
    return _tensor(storage, offset, shape, stride, False)


def _quantized(
    storage: Any, offset: Any, shape: Any, stride: Any, parameters: Any, requires_grad: Any, hooks: Any = None
) -> TensorSpec:
    spec = _tensor(storage, offset, shape, stride, requires_grad, hooks)
    scheme, *given = parameters if type(parameters) is tuple else (None,)
    dtype = _QUANTIZED.get(spec.element.name, "")
    if scheme == _PER_TENSOR and len(given) == 2 and type(given[0]) is float and type(given[1]) is int:
        return replace(spec, quantizer=Quantizer(dtype=dtype, scale=given[0], zero_point=given[1]))
    if scheme == _PER_CHANNEL and len(given) == 3 and type(given[0]) is type(given[1]) is TensorSpec:
        scale, zero, axis = given
        if not _is_size(axis) or axis >= len(spec.shape) or not scale.shape == zero.shape == (spec.shape[axis],):
            raise damaged(say("readers.quantized_tensor_no_known_form"))
        return replace(spec, quantizer=Quantizer(dtype=dtype, scale=scale, zero_point=zero, axis=axis))
    raise damaged(say("readers.quantized_tensor_no_known_form"))


def _parameter(data: Any, requires_grad: Any, _hooks: Any = None, _state: Any = None) -> TensorSpec:
    if type(data) is not TensorSpec:
        raise damaged(say("readers.parameter_without_tensor"))
    return replace(data, parameter=True, requires_grad=requires_grad is True)


def _moved_tensor(data: Any, element: Any, device: Any, requires_grad: Any) -> TensorSpec:
    if type(data) is not TensorSpec or type(element) is not ElementType or not _is_text(device):
        raise damaged(say("readers.device_tensor_without_tensor"))
    if element is not data.element:
        raise TensorError(
            say("readers.tensor_stored", name=data.element.name, name2=element.name), kind="unsupported", hint=_SAVE_CPU
        )
    return replace(data, storage=replace(data.storage, device=device), requires_grad=requires_grad is True)


def _typed_tensor(build: Any, kind: Any, arguments: Any, _state: Any) -> Any:
    """A tensor that had Python attributes; they are dropped, the numbers are those of the plain tensor."""
    if type(build) is not Builder or kind not in (_TENSOR, _PARAMETER) or type(arguments) is not tuple:
        raise damaged(say("readers.tensor_no_known_class"))
    return build.build(*arguments)


def _meta_tensor(*_: Any) -> NoReturn:
    raise no_data()


def no_data() -> TensorError:
    return TensorError(
        say("readers.tensor_meta_device_holds_no_numbers"), kind="no_data", hint=say("readers.only_shape_can_compared")
    )


def _ordered(items: Any = None) -> dict[Any, Any]:
    if items not in (None, (), []):
        raise damaged(say("readers.ordereddict_no_known_form"))
    return {}


def _size(items: Any = ()) -> tuple[Any, ...]:
    if type(items) not in (tuple, list) or not all(_is_size(item) for item in items):
        raise damaged(say("readers.torch_size_no_known_form"))
    return tuple(items)


def _device(kind: Any, index: Any = None) -> str:
    if not _is_text(kind) or not (index is None or _is_size(index)):
        raise damaged(say("readers.torch_device_no_known_form"))
    return kind if index is None else f"{kind}:{index}"


def _npu_format(number: Any) -> int:
    if not _is_size(number):
        raise damaged(say("readers.npu_format_no_known_form"))
    return int(number)


_SAVE_CPU: Final = say("readers.save_torch_save_tensor_detach_cpu")
_TENSOR: Final = "torch.Tensor"
_PER_TENSOR: Final = "per_tensor_affine"
_PER_CHANNEL: Final = "per_channel_affine"
_QUANTIZED: Final = {"torch.int8": "torch.qint8", "torch.uint8": "torch.quint8", "torch.int32": "torch.qint32"}
_PARAMETER: Final = "torch.nn.Parameter"

_STORAGES: Final = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8",
    "BoolStorage": "bool", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "QInt8Storage": "int8", "QUInt8Storage": "uint8", "QInt32Storage": "int32",
}  # fmt: skip

_BUILDERS: Final[dict[str, Any]] = {
    "torch._utils _rebuild_tensor": _plain_tensor,
    "torch._utils _rebuild_tensor_v2": _tensor,
    "torch._utils _rebuild_tensor_v3": _tensor_v3,
    "torch._utils _rebuild_qtensor": _quantized,
    "torch._utils _rebuild_parameter": _parameter,
    "torch._utils _rebuild_parameter_with_state": _parameter,
    "torch._utils _rebuild_device_tensor_from_cpu_tensor": _moved_tensor,
    "torch._utils _rebuild_meta_tensor_no_storage": _meta_tensor,
    "torch._tensor _rebuild_from_type_v2": _typed_tensor,
    "torch_npu.utils.storage _rebuild_npu_tensor": _npu_tensor,
    "torch_npu.npu._format Format": _npu_format,
    "collections OrderedDict": _ordered,
    "torch Size": _size,
    "torch device": _device,
}

_UNSUPPORTED: Final = {
    "_rebuild_sparse_tensor": ("sparse", "tensor.to_dense()"),
    "_rebuild_nested_tensor": ("nested", "tensor.to_padded_tensor(0)"),
    "_rebuild_wrapper_subclass": (say("readers.wrapper_class_without_storage"), say("readers.local_tensor_inside")),
    "per_channel_affine_float_qparams": ("quantized", "tensor.dequantize()"),
    "QUInt4x2Storage": ("quantized", "tensor.dequantize()"),
    "QUInt2x4Storage": ("quantized", "tensor.dequantize()"),
}
_PACKED: Final = frozenset(
    f"torch {name}"
    for name in (
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in range(1, 8)), *(f"bits{form}" for form in
        ("1x8", "2x4", "4x2", "8", "16")), "float4_e2m1fn_x2", "qint8", "quint8", "qint32", "quint4x2", "quint2x4",
    )
)  # fmt: skip


def unknown_global(name: bytes) -> NoReturn:
    """Raise the refusal of a global that TABLE lacks: with a remedy where it is a tensor of a kind not read here."""
    text = name.decode("ascii", "backslashreplace")
    module, _, plain = text.partition(" ")
    if module.split(".")[0] == "torch" and plain in _UNSUPPORTED:
        word, remedy = _UNSUPPORTED[plain]
        raise TensorError(
            say("readers.tensor", word=word), kind="unsupported", hint=say("readers.save_instead", remedy=remedy)
        )
    if text in _PACKED:
        raise TensorError(
            say("readers.dtype_packs_scales_numbers", text=text.replace(' ', '.')), kind="unsupported",
            hint=say("readers.save_tensor_converted_plain_dtype"),
        )  # fmt: skip
    no_global(name)


def _table() -> dict[bytes, Any]:
    table: dict[bytes, Any] = {}
    for name, build in _BUILDERS.items():
        table[name.encode()] = Builder(name=name, build=build)
    for name, kind in _STORAGES.items():
        for module in ("torch", "torch.cuda", "torch.npu", "torch_npu.npu", "torch.storage"):
            table[f"{module} {name}".encode()] = StorageType(name=name, element=ELEMENT_TYPES[f"torch.{kind}"])
    for module in ("torch", "torch.storage"):
        table[f"{module} UntypedStorage".encode()] = StorageType(name="UntypedStorage", element=None)
    for name, element in ELEMENT_TYPES.items():
        table[name.replace(".", " ", 1).encode()] = element
    table.update({f"torch {scheme}".encode(): scheme for scheme in (_PER_TENSOR, _PER_CHANNEL)})
    table[b"torch Tensor"] = table[b"torch._tensor Tensor"] = _TENSOR
    table[b"torch.nn.parameter Parameter"] = _PARAMETER
    return table


TABLE: Final[Mapping[bytes, Any]] = _table()
