"""Twenty specifications: what people ask for, and what nobody can give."""

from spotferry.types import UserInstanceSpecs

_ASKED: tuple[dict[str, object], ...] = (
    {},
    {"memory_gb": 16, "max_price_usd_hour": "1.0"},
    {"max_price_usd_hour": "0.2"},
    {"cpu_cores": 8, "memory_gb": 32},
    {"cpu_cores": 64},
    {"memory_gb": 500},
    {"gpu": "T4"},
    {"gpu": "NVIDIA", "vram_gb": 40},
    {"gpu": "A100", "gpu_count": 8},
    {"gpu_count": 4},
    {"arch": "arm64", "cpu_cores": 16},
    {"spot": False, "memory_gb": 64},
    {"disk_gb": 2000, "cpu_cores": 4},
    {"disk_gb": 500, "max_price_usd_hour": "0.30"},
    {"regions": ["us-west-2", "eu-west-1"], "cpu_cores": 2},
    {"providers": ["aws"], "instance_type": "m5.xlarge"},
    {"memory_gb": 1_000_000},
    {"max_price_usd_hour": "0.00001"},
    {"gpu": "A100", "regions": ["eu-west-3"]},
    {"instance_type": "m5.lagre"},
)
SPECIFICATIONS = tuple(UserInstanceSpecs.model_validate(asked) for asked in _ASKED)
