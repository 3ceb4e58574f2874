"""Keys that are defined twice in a YAML file, of which YAML readers silently use the last."""

from collections.abc import Iterator
from pathlib import Path

import yaml

from privacy_assets.errors import InvalidSettingError

MERGE = "<<"


def require_single_keys(path: Path, line: int) -> None:
    """Refuse a document in which a mapping has a key twice; the message names both lines.

    ``line`` is a line of the document, counted from 1, because a file may contain several documents. A missing file is
    refused elsewhere.
    """
    if not path.is_file():
        return
    for document in yaml.compose_all(path.read_text(encoding="utf-8"), yaml.SafeLoader):
        if document is None or not document.start_mark.line < line <= document.end_mark.line + 1:
            continue
        for key, first in _repeated(document):
            raise InvalidSettingError(
                f"{path}:{key.start_mark.line + 1}: {key.value!r} is already defined on line "
                f"{first.start_mark.line + 1}. Expected each key once; YAML would use the last."
            )


def _repeated(node: yaml.Node) -> Iterator[tuple[yaml.Node, yaml.Node]]:
    """Yield each repeated key of a mapping together with its first occurrence, in the order of the file."""
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _repeated(each)
    if isinstance(node, yaml.MappingNode):
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != MERGE:
                named = (key.tag, key.value)
                if named in first:
                    yield key, first[named]
                first.setdefault(named, key)
            yield from _repeated(value)
