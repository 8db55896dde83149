"""What every store promises; a store's test file is a fixture `store` and this class."""

from tests.contract.store_contract_attempts import AttemptContract, BanContract
from tests.contract.store_contract_jobs import JobContract
from tests.contract.store_contract_saves import SaveContract
from tests.contract.store_contract_sightings import SightingContract


class StoreContract(JobContract, SaveContract, AttemptContract, BanContract, SightingContract):
    """All that a store promises."""
