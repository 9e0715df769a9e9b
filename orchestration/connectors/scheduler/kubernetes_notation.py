"""Kubernetes' notation for amounts, and how much of a GPU each device plugin's resources stand for.

Amounts become the integer units of the landing tables here, once; `Fraction` keeps `100m` or a third of a GPU exact
until the one rounding, half away from zero.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction

from orchestration.connectors.scheduler.notation import half_away, mig_share
from orchestration.landing.schemas import GPU_UNITS_PER_GPU

_SUFFIX = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)},
}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([a-zA-Z]*))$")

PLAIN = {"cpu", "memory", "ephemeral_storage", "pods", "storage"}
WHOLE_DEVICES = {"gpu_intel_com_i915", "gpu_intel_com_xe", "habana_ai_gaudi", "volcano_sh_gpu_number"}
"""Devices that count as one GPU each, besides any vendor's `…/gpu`."""
VIRTUAL = {
    # Number of virtual GPUs, percent of the compute of each, percent of the memory of each.
    "nvidia_com_gpu": ("nvidia_com_gpucores", "nvidia_com_gpumem_percentage"),
    "volcano_sh_vgpu_number": ("volcano_sh_vgpu_cores", "volcano_sh_vgpu_memory_percentage"),
}
PERCENT = (
    # Alternatives that say the same thing, as percent of a GPU over all devices: the first that is there counts.
    ("koordinator_sh_gpu_core", "koordinator_sh_gpu", "koordinator_sh_gpu_memory_ratio"),
    ("aliyun_com_gpu_core_percentage",),
)
DETAILS = {"nvidia_com_gpumem", "volcano_sh_vgpu_memory", "koordinator_sh_gpu_memory"}
"""They say how much memory of a GPU; its share is known from another resource, or the GPU counts as a whole."""
_MIG = re.compile(r"nvidia_com_mig_(\d+g)_(\d+gb)(?:_me)?(?:_shared)?$")
_SHARED = "nvidia_com_gpu_shared"


def quantity(text: str) -> Fraction:
    """A Kubernetes quantity: `500m`, `64Gi`, `1e3`, `0.5`."""
    found = _QUANTITY.match(text.strip())
    if not found or (found[3] or "") not in _SUFFIX:
        raise ValueError(f"quantity that cannot be read: {text[:40]}")
    return Fraction(found[1] + (found[2] or "")) * _SUFFIX[found[3] or ""]


def parse_requests(text: str, gpu_replicas: int | None = None) -> tuple[int, int | None, int | None, list[str]]:
    """What a pod asks for, as (gpu_units, cpu_millicores, memory_mib, doubts about it).

    `text` is a JSON object of resources, or one with `containers` and `init_containers` as lists of such objects. Init
    containers run before the others and one after another, so a pod holds the greater of the two.
    """
    asked = json.loads(text)
    if not isinstance(asked, dict):
        raise ValueError("requests is not an object")
    if "containers" not in asked:
        asked = {"containers": [asked]}
    replicas = _replicas(asked.get("gpu_replicas")) or gpu_replicas
    running = [_amounts(container) for container in asked["containers"]]
    before = [_amounts(container) for container in asked.get("init_containers") or []]
    at_once = sum((_gpus(amounts, replicas or 1) for amounts in running), _fraction_of_gpu(asked))
    gpus = max(at_once, *(_gpus(amounts, replicas or 1) for amounts in before), Fraction(0))
    cpu, memory = (_held(name, running, before) for name in ("cpu", "memory"))
    return (
        half_away(gpus * GPU_UNITS_PER_GPU),
        None if cpu is None else half_away(cpu * 1000),
        None if memory is None else half_away(memory / 2**20),
        sorted({doubt for amounts in [*running, *before] for doubt in _doubts(amounts, replicas)}),
    )


def _replicas(text: object) -> int | None:
    if text is None:
        return None
    if not str(text).isdigit() or not int(str(text)):
        raise ValueError(f"gpu.replicas of the node is not a number: {text}")
    return int(str(text))


def _amounts(requests: Mapping[str, object]) -> dict[str, Fraction]:
    """Resources by the names that kube-state-metrics gives them: letters, digits and underscores."""
    amounts = {
        re.sub(r"[^a-zA-Z0-9]", "_", name): quantity(str(value))
        for name, value in requests.items()
        if value is not None
    }
    if any(amount < 0 for amount in amounts.values()):
        raise ValueError("requests is negative")
    return amounts


def _held(name: str, running: list[dict[str, Fraction]], before: list[dict[str, Fraction]]) -> Fraction | None:
    if not any(name in amounts for amounts in [*running, *before]):
        return None
    return max(
        [sum(amounts.get(name, Fraction(0)) for amounts in running), *(a.get(name, Fraction(0)) for a in before)]
    )


def _gpus(amounts: Mapping[str, Fraction], replicas: int) -> Fraction:
    """The GPUs of one container. A replica of a GPU whose time is shared is that part of it."""
    gpus = Fraction(0)
    for name, amount in amounts.items():
        if name in VIRTUAL:
            percent = next((amounts[part] for part in VIRTUAL[name] if amounts.get(part)), None)
            gpus += amount * percent / 100 if percent is not None else amount / replicas
        elif name == _SHARED:
            gpus += amount / replicas
        elif found := _MIG.match(name):
            share = mig_share(f"{found[1]}.{found[2]}") or Fraction(1)
            gpus += amount * share / (replicas if name.endswith("_shared") else 1)
        elif _is_whole(name):
            gpus += amount
    for alternatives in () if gpus else PERCENT:
        gpus += next((amounts[name] for name in alternatives if name in amounts), Fraction(0)) / 100
    return gpus


def _fraction_of_gpu(asked: Mapping[str, object]) -> Fraction:
    """Run:ai's annotation: a fraction of each of some GPUs, beside the resources."""
    fraction, devices = asked.get("gpu_fraction"), asked.get("gpu_fraction_num_devices")
    return quantity(str(fraction)) * quantity(str(devices or 1)) if fraction else Fraction(0)


def _is_whole(name: str) -> bool:
    return name in WHOLE_DEVICES or (name.endswith("_gpu") and name != "koordinator_sh_gpu")


def _doubts(amounts: Mapping[str, Fraction], replicas: int | None) -> list[str]:
    """What a container asks for that might be (a part of) a GPU and is not known to be one."""
    found = [f"resource {name} counts as no GPU" for name in amounts if not _is_understood(name, amounts)]
    if replicas is None and any(name == _SHARED or (_MIG.match(name) and name.endswith("_shared")) for name in amounts):
        found.append("replicas of shared GPUs count as whole ones: neither the node's labels nor gpu_replicas say more")
    return found


def _is_understood(name: str, amounts: Mapping[str, Fraction]) -> bool:
    known = {*PLAIN, *DETAILS, *VIRTUAL, _SHARED, *(part for parts in (*VIRTUAL.values(), *PERCENT) for part in parts)}
    is_memory_of_share = name == "aliyun_com_gpu_mem" and "aliyun_com_gpu_core_percentage" in amounts
    return (
        name in known
        or is_memory_of_share
        or name.startswith(("hugepages_", "attachable_volumes_"))
        or _is_whole(name)
        or bool(_MIG.match(name))
    )
