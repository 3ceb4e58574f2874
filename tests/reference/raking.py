"""Raking with shrunk margins, record by record."""


def rake(leaves, groups, blocks, people, pool, rounds):
    """Return the factor of each group and block, in a dict; the lists have one entry a record, `people` one a group."""
    kinds, found = sorted(set(blocks)), {}
    share = {}
    for leaf in set(leaves):
        own = [block for block, each in zip(blocks, leaves, strict=True) if each == leaf]
        share[leaf] = {kind: own.count(kind) / len(own) for kind in kinds}
    for group in set(groups):
        places = [i for i, each in enumerate(groups) if each == group]
        seen = {kind: sum(blocks[i] == kind for i in places) / len(places) for kind in kinds}
        expected = {kind: sum(share[leaves[i]][kind] for i in places) / len(places) for kind in kinds}
        chi2 = sum(people[group] * (seen[kind] - expected[kind]) ** 2 / expected[kind] for kind in kinds if seen[kind])
        chi2 += sum(people[group] * expected[kind] for kind in kinds if not seen[kind])
        df = len(kinds) - 1
        is_beyond_chance = chi2 > 2 * df
        moved = (1 - 2 * df / chi2) * people[group] / (people[group] + pool) if is_beyond_chance else 0
        factor = dict.fromkeys(kinds, 1.0)
        for _ in range(rounds):
            made = dict.fromkeys(kinds, 0.0)
            for i in places:
                raised = {kind: share[leaves[i]][kind] * factor[kind] for kind in kinds}
                for kind in kinds:
                    made[kind] += raised[kind] / sum(raised.values()) / len(places)
            for kind in kinds:
                if made[kind] > 0:
                    factor[kind] *= (expected[kind] + moved * (seen[kind] - expected[kind])) / made[kind]
        found |= {(group, kind): factor[kind] for kind in kinds}
    return found
