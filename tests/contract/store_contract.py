"""What every store promises; a store's test file is a fixture `store` and this class."""

from tests.contract.store_contract_attempts import AttemptContract, BanContract
from tests.contract.store_contract_jobs import JobContract
from tests.contract.store_contract_saves import SaveContract


class StoreContract(JobContract, SaveContract, AttemptContract, BanContract):
    """All that a store promises."""
