from __future__ import annotations

from reporters.tokens.bank import READ, WRITE, TokenBank


def bank(readers: int = 1, writers: int = 1) -> TokenBank[str]:
    return TokenBank(readers, writers)


def test_tokens_are_granted_in_order_of_arrival() -> None:
    tokens = bank()
    assert tokens.ask("a", READ, 0.0) == [("a", "r")]
    assert tokens.ask("b", READ, 1.0) == [("a", "x")]
    assert tokens.ask("c", READ, 2.0) == []
    assert tokens.give_back("a", READ, 3.0) == [("b", "r"), ("b", "x")]
    assert tokens.give_back("b", READ, 4.0) == [("c", "r")]


def test_readers_and_writers_have_tokens_of_their_own() -> None:
    tokens = bank(readers=2)
    assert tokens.ask("a", READ, 0.0) == [("a", "r")]
    assert tokens.ask("a", WRITE, 0.0) == [("a", "w")]
    assert tokens.ask("b", READ, 0.0) == [("b", "r")]
    assert tokens.ask("b", WRITE, 0.0) == [("a", "y")]


def test_all_holders_learn_once_that_a_client_waits() -> None:
    tokens = bank(readers=2)
    tokens.ask("a", READ, 0.0)
    tokens.ask("b", READ, 0.0)
    assert set(tokens.ask("c", READ, 0.0)) == {("a", "x"), ("b", "x")}
    assert tokens.ask("d", READ, 0.0) == []


def test_a_process_that_ends_leaves_its_tokens_and_its_place() -> None:
    tokens = bank()
    for client in "abc":
        tokens.ask(client, READ, 0.0)
    assert tokens.leave("b", 1.0) == []
    assert tokens.leave("a", 2.0) == [("c", "r")]


def test_asking_twice_and_giving_back_what_is_not_held_change_nothing() -> None:
    tokens = bank()
    tokens.ask("a", READ, 0.0)
    assert tokens.ask("a", READ, 1.0) == []
    assert tokens.give_back("b", READ, 1.0) == []
    tokens.ask("b", READ, 2.0)
    assert tokens.ask("b", READ, 3.0) == []
    assert tokens.give_back("a", READ, 4.0) == [("b", "r")]
    assert tokens.give_back("b", READ, 5.0) == []


def test_the_figures_say_what_is_held_and_how_many_wait() -> None:
    tokens = bank(readers=2)
    for client in "abc":
        tokens.ask(client, READ, 1.0)
    assert tokens.figures(3.0)[READ] == {
        "limit": 2,
        "held_seconds": [2.0, 2.0],
        "waiting": 1,
        "granted": 2,
        "waited": 0,
    }
    tokens.leave("b", 4.0)
    figures = tokens.figures(4.0)[READ]
    assert (figures["waiting"], figures["granted"], figures["waited"]) == (0, 3, 1)
