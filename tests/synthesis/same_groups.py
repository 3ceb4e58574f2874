def same_groups(one, other):
    """Whether two lists of labels divide their places into the same groups."""
    return len(set(zip(one, other, strict=True))) == len({*one}) == len({*other})
