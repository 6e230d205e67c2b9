"""What comes to a file: its new whole lines, whatever becomes of it between two looks."""

from __future__ import annotations

import codecs
import io
import stat
from typing import TYPE_CHECKING, NamedTuple

from stabtree.common.errors import StabtreeError
from stabtree.loaders.source import glimpse

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

KEPT_BYTES = 512
"""So many of the first bytes, and of the last that were read, are compared before what follows is taken for new."""
HEAD_BYTES = 1 << 16
MAX_NEW = 4 << 20  # of more bytes at once only the last lines are read: the log is judged whole all the same
REST_BYTES = 1 << 16
SNIFFED = 4096
MAX_REST = 1 << 20  # a longer line is no row
# Some disks keep times to two seconds, some networks sizes for longer: what was written in the same moment is seen.
LOOKS_AFTER = 3


class NewLines(NamedTuple):
    """What a look found.

    Attributes:
        text: the new whole lines.
        head: the first lines, of a file that is so long that not all of it is read; else empty.
        anew: whether the file is another one than before: rotated, truncated, or written over.
        problem: why it can't be looked at just now.
    """

    text: str = ""
    head: str = ""
    anew: bool = False
    problem: str = ""


class GrowingFile:
    """One file that grows, by plain looks at its size, time and place: no disk is asked for more.

    Args:
        path: the file; it need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.lines = True
        """Whether it is read; one that is compressed, binary or no rows a line is looked at from outside."""
        self.rewrites = 0
        """How often it was written to and stayed as long as it was."""
        self._mark: tuple[int, ...] = ()
        self._time = 0
        self._looks = 0
        self._forget()

    def _forget(self) -> None:
        self._offset = 0
        self._rest = ""
        self._first = self._last = b""
        self._encoding, self._bom = "utf-8", 0
        self._decoder = self._new_decoder()

    def look(self) -> NewLines:
        """Return what came since the last look; what goes wrong is reported, and tried again at the next one."""
        try:
            status = self.path.stat()
            if not stat.S_ISREG(status.st_mode):
                return NewLines(problem="is not a regular file")
            mark = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
            self._looks += 1
            if mark != self._mark:
                self._looks = 0
            self.rewrites += self._time not in (0, status.st_mtime_ns) and status.st_size == self.size
            self._time = status.st_mtime_ns
            if self._looks > LOOKS_AFTER:
                return NewLines()
            shrunk = status.st_size < self.size
            self._mark, self.size = mark, status.st_size
            self.lines |= shrunk  # what is written anew may be of another kind
            if self.lines and self.size:
                return self._read()
            return NewLines()
        except (OSError, ValueError) as error:
            self._mark = ()
            return NewLines(problem=getattr(error, "strerror", None) or str(error))
        except StabtreeError as error:
            self._mark = ()
            return NewLines(problem=error.problem)

    def _read(self) -> NewLines:
        with self.path.open("rb") as stream:
            anew = not self._goes_on(stream)
            if anew:
                self._forget()
            fresh, head = not self._offset, ""
            if fresh and not self._begun():
                return NewLines(anew=anew)
            jumps = self.size - self._offset > MAX_NEW
            if jumps:
                if fresh:
                    self._first, head = stream.read(KEPT_BYTES), glimpse(self.path, HEAD_BYTES).head
                self._jump((self.size - REST_BYTES) & ~3)  # no character is cut in one of two or four bytes
            stream.seek(self._offset)
            data = stream.read(MAX_NEW)
        return NewLines(self._whole(data, cut=jumps), head, anew)

    def _goes_on(self, stream: BinaryIO) -> bool:
        """Return whether the file begins as before, and holds what was last read where it was."""
        if self.size < self._offset or stream.read(len(self._first)) != self._first:
            return False
        stream.seek(self._offset - len(self._last))
        same = stream.read(len(self._last)) == self._last
        stream.seek(0)
        return same

    def _begun(self) -> bool:
        """Find out how the file is to be decoded; False for one that is not read line by line, or not yet."""
        source = glimpse(self.path, SNIFFED)
        # Half a letter alone looks like no text.
        self.lines = not (source.packed or (source.binary and self.size >= KEPT_BYTES))
        self._encoding, self._bom = source.encoding, source.bom
        self._decoder = self._new_decoder()
        return not (source.packed or source.binary)

    def _new_decoder(self) -> io.IncrementalNewlineDecoder:
        return io.IncrementalNewlineDecoder(codecs.getincrementaldecoder(self._encoding)("replace"), translate=True)

    def _jump(self, offset: int) -> None:
        self._offset, self._last, self._rest = offset, b"", ""
        self._decoder = self._new_decoder()

    def _whole(self, data: bytes, *, cut: bool) -> str:
        """Return the whole lines that new bytes complete; with `cut` they begin inside a line."""
        drop = 0 if self._offset else self._bom
        if len(self._first) == self._offset:
            self._first = (self._first + data)[:KEPT_BYTES]
        self._offset += len(data)
        self._last = (self._last + data)[-KEPT_BYTES:]
        text = self._rest + self._decoder.decode(data[drop:])
        begin, end = 0, text.rfind("\n") + 1
        if cut:
            begin = text.find("\n") + 1
        self._rest = text[end:]
        self.lines = len(self._rest) <= MAX_REST
        return text[begin:end]
