"""One request, and what Larder counted it as: its one outcome and its one reason."""


def _grown(before, after):
    words = [word for word, count in after.items() if count != before[word]]
    assert len(words) == 1 and after[words[0]] == before[words[0]] + 1, f"one request, counted as {words}"
    return words[0]


def ask(larder, target, fields=None, **more):
    """Like larder.ask(), with reply.told: ("hit", "fresh"). Nobody else may be asking at that time."""
    before = larder.counted()
    reply = larder.ask(target, fields, **more)
    after = larder.counted()
    reply.told = tuple(_grown(before[table], after[table]) for table in ("outcomes", "reasons"))
    return reply


def store(larder, target="/a", fields=None):
    """The first request: a miss that is stored."""
    reply = ask(larder, target, fields)
    assert reply.told[0] == "miss" and "stored" in reply.cache_status, (reply, reply.told)
    return reply
