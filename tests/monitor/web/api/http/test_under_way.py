"""Of dear requests of a route a caller has few at the same moment; of cheap ones any number."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import RequestFactory
from django.urls import resolve

from monitor.web.api.http.processor_budget import ProcessorBudgetMiddleware
from monitor.web.api.http.under_way import ExpectedCosts, UnderWay

DEAR, CHEAP = "/failures/", "/help/"


def begun(costs: ExpectedCosts, sender: str, route: str, times: int) -> list[UnderWay]:
    """Let *sender* send *times* requests at once; return those that were permitted."""
    requests = [UnderWay(costs, sender) for _ in range(times)]
    return [each for each in requests if each.begin(route)]


def test_a_dear_request_permits_no_other_until_it_has_ended() -> None:
    costs = ExpectedCosts()
    costs.learn("user:1", DEAR, 2.0)
    (first,) = begun(costs, "user:1", DEAR, 12)
    assert len(begun(costs, "user:1", CHEAP, 12)) == 12
    first.end("user:1", 2.0)
    assert len(begun(costs, "user:1", DEAR, 12)) == 1


def test_requests_of_a_third_of_a_second_are_answered_five_at_once() -> None:
    costs = ExpectedCosts()
    costs.learn("user:1", DEAR, 0.33)
    assert len(begun(costs, "user:1", DEAR, 12)) == 5


def test_a_caller_without_earlier_requests_is_judged_by_those_of_others_and_then_by_its_own() -> None:
    costs = ExpectedCosts()
    assert len(begun(costs, "user:1", DEAR, 12)) == 12, "nothing is known of the route"
    costs.learn("user:1", DEAR, 2.0)
    (first,) = begun(costs, "user:2", DEAR, 12)
    first.end("user:2", 0.01)
    assert len(begun(costs, "user:2", DEAR, 12)) == 12


def test_a_dear_request_is_remembered_for_some_cheaper_ones() -> None:
    costs = ExpectedCosts()
    costs.learn("user:1", DEAR, 2.0)
    costs.learn("user:1", DEAR, 0.01)
    (first,) = begun(costs, "user:1", DEAR, 3)
    first.end("user:1", 0.01)
    for _ in range(50):
        costs.learn("user:1", DEAR, 0.01)
    assert len(begun(costs, "user:1", DEAR, 12)) == 12


@pytest.mark.parametrize(
    ("path", "accept"), [("/login/", b"are still being answered"), ("/api/v1/openapi.json", b"are under way")]
)
def test_a_request_beside_a_dear_one_is_refused_for_a_second(path: str, accept: bytes) -> None:
    """The view of the first request sends the second."""
    answers: list[Any] = []

    def view(request: HttpRequest) -> Any:
        request.resolver_match = resolve(path)
        if refusal := middleware.process_view(request):
            return refusal
        if not answers:
            answers.append(middleware(RequestFactory().get(path)))
        return HttpResponse("answered")

    middleware = ProcessorBudgetMiddleware(view)
    middleware._costs.learn("address:127.0.0.1", resolve(path).route, 2.0)
    first = middleware(RequestFactory().get(path))
    (second,) = answers
    assert (first.status_code, second.status_code, second["Retry-After"]) == (200, 429, "1")
    assert accept in second.content
    answers.clear()
    assert middleware(RequestFactory().get(path)).status_code == 200, "the first one has ended"
