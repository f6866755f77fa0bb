"""How many times all sessions of a user were ended."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import connection, models

_END = """
INSERT INTO monitor_endedsessions (user_id, times) VALUES (%s, 1)
ON CONFLICT (user_id) DO UPDATE SET times = monitor_endedsessions.times + 1 RETURNING times
"""


class EndedSessionsManager(models.Manager["EndedSessions"]):
    def times(self, user: int) -> int:
        """Return how many times all sessions of the user with the key *user* were ended."""
        return self.filter(user=user).values_list("times", flat=True).first() or 0

    def add(self, user: int) -> int:
        """Count another time for the user with the key *user*; return how many it are."""
        with connection.cursor() as cursor:
            cursor.execute(_END, [user])
            (times,) = cursor.fetchone()
        return int(times)


class EndedSessions(models.Model):
    """All sessions of *user* were ended *times* times; a session notes how many it were when its login began.

    A session that notes another number is over, whether a list of sessions has it or not. So is a login that
    was under way then, or waited for its second factor, and what has become of it.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")
    times = models.PositiveIntegerField()

    objects = EndedSessionsManager()

    def __str__(self) -> str:
        return f"{self.user}: {self.times} times"
