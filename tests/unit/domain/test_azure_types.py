"""Azure's names, read in one place; the names here are those of its lists of sizes."""

import pytest

from spotferry.domain.azure_types import AzureType, azure_type
from spotferry.domain.cpu_families import cpu_family
from spotferry.domain.offer_words import part_matches
from spotferry.domain.pools import patterns
from spotferry.types.errors import CapacityError
from spotferry.types.instance import Instance

FAMILIES = {
    "Standard_A*": ("Standard_A3", "Standard_A8"),
    "Standard_A*_v2": ("Standard_A1_v2", "Standard_A8_v2"),
    "Standard_A*m_v2": ("Standard_A2m_v2", "Standard_A8m_v2"),
    "Standard_B*ms": ("Standard_B1ms", "Standard_B20ms"),
    "Standard_B*pls_v2": ("Standard_B2pls_v2",),
    "Standard_D*_v2_Promo": ("Standard_D11_v2_Promo", "Standard_D3_v2_Promo"),
    "Standard_D*_v3": ("Standard_D2_v3", "Standard_D64_v3"),
    "Standard_D*s_v5": ("Standard_D2s_v5", "Standard_D96s_v5"),
    "Standard_D*plds_v6": ("Standard_D2plds_v6", "Standard_D96plds_v6"),
    "Standard_DC*as_cc_v5": ("Standard_DC4as_cc_v5",),
    "Standard_DC*eds_v5": ("Standard_DC2eds_v5",),
    "Standard_DS*_v2": ("Standard_DS5_v2", "Standard_DS13_v2", "Standard_DS13-4_v2", "Standard_DS14-8_v2"),
    "Standard_E*s_v3": ("Standard_E20s_v3", "Standard_E64-16s_v3"),
    "Standard_E*is_v5": ("Standard_E104is_v5",),
    "Standard_E*ads_v5": ("Standard_E4ads_v5", "Standard_E8-4ads_v5", "Standard_E96-48ads_v5"),
    "Standard_EC*iads_v5": ("Standard_EC96iads_v5",),
    "Standard_F*": ("Standard_F1", "Standard_F16"),
    "Standard_F*s_v2": ("Standard_F2s_v2", "Standard_F72s_v2"),
    "Standard_FX*mds_v2": ("Standard_FX2mds_v2", "Standard_FX48-12mds_v2"),
    "Standard_GS*": ("Standard_GS5", "Standard_GS5-16", "Standard_GS5-8"),
    "Standard_H*mr": ("Standard_H16mr",),
    "Standard_HB*rs_v3": ("Standard_HB120rs_v3", "Standard_HB120-16rs_v3"),
    "Standard_HX*rs": ("Standard_HX176rs", "Standard_HX176-24rs"),
    "Standard_L*aos_v4": ("Standard_L2aos_v4", "Standard_L32aos_v4"),
    "Standard_M*": ("Standard_M64", "Standard_M128"),
    "Standard_M*ms": ("Standard_M8ms", "Standard_M8-2ms", "Standard_M128-64ms"),
    "Standard_M*bds_2_v3": ("Standard_M96bds_2_v3", "Standard_M96-48bds_2_v3"),
    "Standard_M*ds_2_v3": ("Standard_M96ds_2_v3",),
    "Standard_M*ds-24_2_v3": ("Standard_M96ds-24_2_v3",),
    "Standard_M*ids-416_16_v3": ("Standard_M832ids-416_16_v3",),
    "Standard_NC*": ("Standard_NC6", "Standard_NC24"),
    "Standard_NC*r_Promo": ("Standard_NC24r_Promo",),
    "Standard_NC*as_T4_v3": ("Standard_NC4as_T4_v3", "Standard_NC64as_T4_v3"),
    "Standard_NC*ads_A100_v4": ("Standard_NC24ads_A100_v4", "Standard_NC96ads_A100_v4"),
    "Standard_NCC*ads_H100_v5": ("Standard_NCC40ads_H100_v5",),
    "Standard_ND*isr_NDR_GB200_v6": ("Standard_ND128isr_NDR_GB200_v6",),
    "Standard_ND*isr_MI300X_v5": ("Standard_ND96isr_MI300X_v5",),
    "Standard_NG*ads_V620_v1": ("Standard_NG8ads_V620_v1",),
    "Standard_NP*s": ("Standard_NP10s",),
    "Standard_NV*adms_A10_v5": ("Standard_NV36adms_A10_v5",),
}
NAMES = [(name, family) for family, names in FAMILIES.items() for name in names]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Standard_F72", ("Standard_F", 72, "", "")),
        ("Standard_D4s_v5", ("Standard_D", 4, "s", "_v5")),
        ("Standard_E8-4ads_v5", ("Standard_E", 8, "ads", "_v5")),
        ("Standard_M832ids-416_16_v3", ("Standard_M", 832, "ids", "-416_16_v3")),
        ("Standard_NC24ads_A100_v4", ("Standard_NC", 24, "ads", "_A100_v4")),
        ("standard_d2ps_v5", ("standard_d", 2, "ps", "_v5")),
    ],
)
def test_a_name_has_its_parts(name: str, parts: tuple[str, int, str, str]) -> None:
    """What may be used of the vCPUs is no part where it stands behind them; case is kept as it was."""
    assert azure_type(name) == AzureType(*parts)


@pytest.mark.parametrize(
    "name", ["", "m5.large", "n2-standard-4", "C5", "Basic_A1", "Standard_", "Standard_D", "unheard"]
)
def test_other_names_are_none(name: str) -> None:
    """A name of another form, or of another cloud, has no parts to go by."""
    assert azure_type(name) is None


@pytest.mark.parametrize(("name", "family"), NAMES)
def test_refusals_and_processors_read_a_name_alike(name: str, family: str) -> None:
    """The pattern of a family is that of its quota and of its processors, and each of its types is in it."""
    machine = Instance(provider="azure", region="r", instance_type=name)
    assert patterns("spot", machine, CapacityError("Code", "words", scope="family")) == [("spot", f"r/*/{family}")]
    assert cpu_family("azure", name) == family.lower()
    assert part_matches(family, name)
