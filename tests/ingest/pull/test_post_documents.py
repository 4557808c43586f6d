"""The documents that pulled posts are stored by."""

from autopost_contracts.payload import Button, PostRequest
from autopost_ingest.posts.enqueue import post_of
from autopost_ingest.posts.normalize import normalize
from autopost_ingest.pull.posts import post_to_enqueue

OF_ONE_REQUEST = {"source", "run_id", "trace_id", "traceparent"}


def test_an_item_of_a_source_is_stored_as_the_same_post_of_a_request_is() -> None:
    link = "https://site.example/"
    request = PostRequest(
        text="<b>News</b>", parse_mode="HTML", links=(link,), buttons=((Button("More", link),),), tags=("news",)
    )
    normalized = normalize(request)

    pushed, pulled = post_of(request, normalized), post_to_enqueue(request, normalized, "item-1", "feed", [])

    assert set(pushed) - OF_ONE_REQUEST == {"content_hash", "hash_version", "normalization_version", "payload", "tags"}
    assert {name: pulled[name] for name in set(pushed) - OF_ONE_REQUEST} == {
        name: pushed[name] for name in set(pushed) - OF_ONE_REQUEST
    }
    assert (pulled["source_ref"], pulled["renderings"]) == ("item-1", [])
