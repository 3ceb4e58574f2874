"""The mpUCC assessment: how well synthetic records single out original ones."""
