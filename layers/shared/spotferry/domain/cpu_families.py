"""Which machine types most likely have the same processor: what a process that goes on elsewhere must find there."""

from spotferry.domain.azure_types import azure_type


def cpu_family(provider: str, instance_type: str) -> str:
    """The family of a machine type, within which clouds mostly sell one generation of processors.

    AWS names it before the dot (`m5`), Google Cloud before the first hyphen (`n2`), Azure around the size
    (`Standard_D4s_v5` is of `standard_d*s_v5`); elsewhere each type is its own. A cloud may still mix processors in one
    family, as Google Cloud does in `n1`: the machine's agent compares the processors themselves before it goes on.
    """
    name = instance_type.lower()
    if provider == "aws":
        return name.partition(".")[0]
    if provider == "gcp":
        return name.partition("-")[0]
    azure = azure_type(name) if provider == "azure" else None
    return azure.family if azure else name
