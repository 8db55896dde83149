"""The marketplace's images, as Azure's resource manager lists them."""

from __future__ import annotations

import re

from local import azure_facts as facts
from local.arm_model import PUBLISHED, group_id
from local.json_face import Json, RestError

_PATH = re.compile(r"([^/]+)/artifacttypes/vmimage/offers/([^/]+)/skus/([^/]+)/versions(?:/([^/]+))?", re.IGNORECASE)


def image_answer(region: str, path: str) -> Json | list[Json]:
    """The versions of an image, or one of them.

    Raises:
        RestError: there is no such image in the region.
    """
    found = _PATH.fullmatch(path)
    named = tuple(part.lower() for part in found.groups()[:3]) if found else ("", "", "")
    known = PUBLISHED.get((named[0], named[1], named[2]))
    if found is None or known is None or region not in facts.ZONES or found[4] not in {None, known[0]}:
        raise RestError(404, "NotFound", "Artifact: VMImage was not found.")
    version, arch, size_gb = known
    row: Json = {"name": version, "id": f"{group_id('')}/{'/'.join(named)}/{version}", "location": region}
    if found[4] is None:
        return [row]
    disk = {"operatingSystem": "Linux", "sizeInGb": size_gb, "sizeInBytes": size_gb * 1024**3}
    return row | {"properties": {"architecture": arch, "hyperVGeneration": "V2", "osDiskImage": disk}}
