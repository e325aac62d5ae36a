"""The corpus beside the checkout: tests that are made from it are none without it, and this one says so by name."""


def test_the_shared_corpus_is_there(require, shared):
    require("shared")
    assert (shared / "corpus" / "seed_claims.json").is_file()
