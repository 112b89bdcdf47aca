"""Libraries as other people's linkers take them."""

from orchestrator.emit.compile.archive import linkable


def test_a_library_for_a_board_says_nothing_of_the_stack() -> None:
    names = b"!<arch>\n\0.text\0.note.GNU-stack\0.strtab\0 .note.GNU-stack.x"
    bare = linkable(names, is_bare=True)
    comment = b"\0.comment\0\0\0\0\0\0\0\0"
    assert bare == names.replace(b"\0.note.GNU-stack\0", comment)
    assert len(bare) == len(names)
    assert linkable(names, is_bare=False) == names
