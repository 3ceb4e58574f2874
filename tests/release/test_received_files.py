import io
import threading

from privacy_assets.release.received_files import Unchecked


class SlowFile(io.BytesIO):
    """A file whose first block comes when it is let go."""

    def __init__(self, data):
        super().__init__(data)
        self.is_read, self.may_go_on = threading.Event(), threading.Event()

    def read(self, n_bytes=-1):
        self.is_read.set()
        assert self.may_go_on.wait(60)
        return super().read(n_bytes)


def test_whoever_reads_ahead_takes_nothing_from_those_who_read_the_file_next():
    file = SlowFile(b"ab" * 1_000)
    unchecked = Unchecked(file, 10_000)
    ahead = threading.Thread(target=unchecked.read_all)
    ahead.start()
    assert file.is_read.wait(60)
    ending = threading.Thread(target=unchecked.end)
    ending.start()
    ending.join(0.05)
    assert ending.is_alive(), "a block that is being read is waited for"
    file.may_go_on.set()
    ending.join(60)
    ahead.join(60)
    assert unchecked.read(10) == b""
    file.seek(0)
    assert file.read() == b"ab" * 1_000


def test_blocks_are_compared_while_others_are_read():
    data = bytes(range(256)) * 4_000
    unchecked = Unchecked(io.BytesIO(data), len(data))
    ahead = threading.Thread(target=lambda: [unchecked.read(1_000) for _ in range(1_024)])
    ahead.start()
    for _ in range(20_000):
        assert unchecked.begins_with(b"")
    ahead.join(60)
    assert unchecked.begins_with(data)
    assert unchecked.is_checked
