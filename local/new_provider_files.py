"""What a new cloud begins with: texts in which @NAME@ stands for the cloud, and @CLASS@ for it in a class's name."""

from collections.abc import Mapping

_INIT = '''"""The cloud `@NAME@`. Imports nothing, so that its notices can be read without its SDK."""
'''

_REQUIREMENTS = """# The SDK, pinned; a comment alone where the runtime's own libraries are enough.
"""

_STATES = '''"""What @NAME@ calls the states of a machine, as data."""

from collections.abc import Mapping

STATES: Mapping[str, str] = {}
"""Its state to one of INSTANCE_STATES: a machine that is off and still bills is "stopping", not "terminated"."""
'''

_ERRORS = '''\
"""What the refusals of @NAME@ mean, as data: code -> what to try next, how far it reaches, how long it stands.

The only place that knows a vendor's exception: everything above sees `spotferry.types.errors`.
"""

from collections.abc import Mapping

from spotferry.providers.verdict import UNKNOWN, Verdict
from spotferry.types.errors import CapacityError

LAUNCH_CODES: Mapping[str, Verdict] = {}
"""Exact codes of a refused launch. Take the narrowest scope that is true."""


def launch_error(code: str, message: str, region: str) -> CapacityError:
    """The exception to raise for a launch that was refused; a code that no table knows keeps the cloud's words."""
    return LAUNCH_CODES.get(code, UNKNOWN).error_of(code, message, region)
'''

_PROVIDER = '''"""The cloud `@NAME@`, as the broker launches on it."""

from collections.abc import Iterator, Mapping, Sequence

from spotferry.ports.cloud import CloudProvider, RegionSettings
from spotferry.providers.context import ProviderContext
from spotferry.types.events import ProviderEvent
from spotferry.types.instance import Attempt, Candidate, Instance, LaunchRequest


def build(context: ProviderContext) -> CloudProvider:
    """The adapter for one deployment."""
    return @CLASS@Provider(context)


class @CLASS@Provider:
    """Implements `ports.cloud.CloudProvider`: the docstrings there and in `types.provider` are the contract."""

    def __init__(self, context: ProviderContext) -> None:
        self._context = context

    def name(self) -> str:
        """The cloud's name."""
        return "@NAME@"

    def prepare(
        self,
        candidate: Candidate,
        settings: RegionSettings,
        image: str,
        tags: Mapping[str, str],
        *,
        disk_is_fixed: bool = True,
    ) -> LaunchRequest:
        """Resolve image, zone, network and disk to a fixed request; see the port."""
        raise NotImplementedError

    def create_instance(self, candidate: Instance) -> Instance:
        """Launch the attempt's machine; `cedana_id` is the idempotency token, or the name that is looked up first."""
        raise NotImplementedError

    def destroy_instance(self, instance: Instance) -> None:
        """End the machine and all that was made for it; succeeds when it is gone or never was."""
        raise NotImplementedError

    def describe_instance(self, instances: Sequence[Instance], filter: str) -> list[Instance]:  # noqa: A002
        """The machines as the cloud shows them now, in calls of its largest size; missing is not always gone."""
        raise NotImplementedError

    def get_instance_status(self, instance: Instance) -> ProviderEvent | None:
        """What the cloud has announced for the machine; None when there is nothing to say."""
        raise NotImplementedError

    def get_instance_statuses(self, instances: Sequence[Instance]) -> Mapping[str, ProviderEvent]:
        """The same for many, given as `describe_instance` returned them; no call for each of them."""
        raise NotImplementedError

    def find_instance(self, attempt: Attempt) -> Attempt | None:
        """The machine launched for this attempt, by its token or name; None when there is none, or it has ended."""
        raise NotImplementedError

    def owned_instances(self, region: str) -> Iterator[Instance]:
        """Every machine of this deployment in the region that is not terminated, over all pages."""
        raise NotImplementedError
'''

FOLDER: Mapping[str, str] = {
    "__init__.py": _INIT,
    "requirements.txt": _REQUIREMENTS,
    "states.py": _STATES,
    "errors.py": _ERRORS,
    "provider.py": _PROVIDER,
}
"""Contents of the cloud's folder, by name."""

_TEST = '''"""The contract for @NAME@: the adapter, through its official client, against its wire face in local/."""

import pytest

from tests.contract.provider_contract import ProviderContract
from tests.contract.provider_contract_world import Cloud


@pytest.fixture(scope="module")
def cloud() -> Cloud:
    """The adapter and the levers of its wire face; `aws_cloud.py` and `paperspace_cloud.py` show how one is written."""
    pytest.fail(
        "the cloud @NAME@ has no wire face yet: write local/@NAME@.py, "
        "and tests/contract/@NAME@_cloud.py with a FaceCloud over it; this fixture returns that",
        pytrace=False,
    )


class Test@CLASS@(ProviderContract):
    """@NAME@ keeps the contract."""
'''

_UNIT = '''\
"""What @NAME@ says, line by line: every line of its tables is tested, and no line is tested that is not there."""

import pytest

from spotferry.providers.@NAME@.errors import LAUNCH_CODES
from spotferry.providers.@NAME@.states import STATES
from spotferry.types.instance import INSTANCE_STATES

EXPECTED_STATES: dict[str, str] = {}
EXPECTED_ERRORS: dict[str, str] = {}
"""Code to the name of the error's class."""


def test_the_states_are_those_of_the_api() -> None:
    """Each documented state has one of ours."""
    if not STATES:
        pytest.fail("providers/@NAME@/states.py has no states yet", pytrace=False)
    assert dict(STATES) == EXPECTED_STATES
    assert set(STATES.values()) <= set(INSTANCE_STATES)


def test_the_codes_are_those_of_the_api() -> None:
    """Each code says what to try next."""
    if not LAUNCH_CODES:
        pytest.fail("providers/@NAME@/errors.py has no codes yet", pytrace=False)
    assert {code: verdict.error.__name__ for code, verdict in LAUNCH_CODES.items()} == EXPECTED_ERRORS
'''

CONTRACT: Mapping[str, str] = {
    "contract/test_provider_NAME.py": _TEST,
    "unit/providers/NAME/test_tables.py": _UNIT,
}
"""Contents of the cloud's tests, by path below tests/."""
