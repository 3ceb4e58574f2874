"""The split that is recommended is the best of those that are judged."""

from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.mpucc.control_size import TRAIN_FRACTIONS, ControlPlan, ControlSize, choose_split


@given(
    st.sampled_from([0.5, 0.65, *TRAIN_FRACTIONS]),
    st.lists(st.none() | st.integers(1, 60), min_size=12, max_size=12),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.sampled_from([1, 250]),
)
def test_the_split_that_is_recommended_is_the_best_of_all_and_no_more_are_judged_than_needed(
    planned, detectable, copied_share, least_control
):
    order = [planned, *TRAIN_FRACTIONS]
    sizes = {}
    for fraction, own in zip(order, detectable, strict=False):
        sizes.setdefault(fraction, ControlSize(round(1000 * fraction), 1000 - round(1000 * fraction), own))
    able = [f for f in order if sizes[f].n_control >= max(least_control, 50) and sizes[f].n_original >= 50]
    share = {f: 2.0 if sizes[f].detectable_copies is None else sizes[f].detectable_share for f in able}
    enough = [f for f in able if share[f] <= copied_share]
    best = enough[0] if enough else min(able, key=lambda f: (share[f], order.index(f)), default=None)
    asked = []

    def judged(fraction, most_share):
        asked.append(fraction)
        own = sizes[fraction]
        is_sought = own.detectable_copies is not None and own.detectable_share <= most_share
        return own if is_sought else ControlSize(own.n_original, own.n_control, None)

    plan = choose_split(judged, planned, copied_share, least_control)
    assert plan == ControlPlan(sizes[planned], best, None if best is None else sizes[best])
    assert asked[0] == planned
    assert len(asked) == len(set(asked))
    assert not enough or asked[-1] in (best, planned)
