"""Where a packed work directory goes."""

import pytest

from spotferry.types import TooLarge, Upload
from spotferry.usecases.keys import upload_key
from spotferry.usecases.request_upload import UPLOAD_LIMIT_BYTES
from tests.unit.usecases.world import ARCHIVE, SHA, World


def test_new_bytes_get_an_address(world: World) -> None:
    """The address takes exactly the size and the digest said, under the content's name."""
    answer = world.request_upload(Upload(sha256=SHA, size_bytes=7))
    assert answer == {"exists": False, "url": f"memory:put:{upload_key(SHA)}:7?3600", "headers": {"x-digest": SHA}}


def test_bytes_that_are_there_are_not_sent_again(world: World) -> None:
    """Content-addressed: the same directory travels once."""
    world.objects.put(upload_key(SHA), ARCHIVE)
    assert world.request_upload(Upload(sha256=SHA, size_bytes=len(ARCHIVE))) == {"exists": True}


def test_bytes_that_expire_soon_are_sent_again(world: World) -> None:
    """A work directory outlives the job that names it: past half of its time in the bucket it travels once more."""
    world.objects.put(upload_key(SHA), ARCHIVE)
    world.clock.move(days=44)
    assert world.request_upload(Upload(sha256=SHA, size_bytes=len(ARCHIVE)))["exists"]
    world.clock.move(days=2)
    assert not world.request_upload(Upload(sha256=SHA, size_bytes=len(ARCHIVE)))["exists"]


def test_bytes_that_arrived_short_are_sent_again(world: World) -> None:
    """An object of another size does not count as there."""
    world.objects.put(upload_key(SHA), b"x")
    assert world.request_upload(Upload(sha256=SHA, size_bytes=2))["exists"] is False


def test_what_no_put_can_take_is_refused(world: World) -> None:
    """Over the bucket's limit for one PUT, the person is told what to do."""
    with pytest.raises(TooLarge, match="spotferryignore"):
        world.request_upload(Upload(sha256=SHA, size_bytes=UPLOAD_LIMIT_BYTES + 1))
    assert world.request_upload(Upload(sha256=SHA, size_bytes=UPLOAD_LIMIT_BYTES))["exists"] is False
