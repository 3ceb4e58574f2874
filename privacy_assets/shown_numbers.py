"""Numbers as people read them; files and programs get all digits."""


def percent(share: float) -> str:
    """Write a share as percent, small ones with one more digit; what is neither none nor all is written as neither."""
    if 0 < share < 0.0001:
        return "<0.01%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.2%}" if 0 < share < 0.1 else f"{share:.1%}"
