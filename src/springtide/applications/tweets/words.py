"""The vocabulary of the tweets, and by which words a text is classified. All words are lower-case ASCII.

Rules of the classes, from the first that fits:

promotion   4 or more hashtags, or 2 or more links
news        a link, a word of reporting and no word of opinion
opinion     a word of opinion, praise or blame
chat        anything else

The sentiment of a text is its words of praise less its words of blame. Its topic is the one with most of its words, the first
in the order below where two have as many, and `other` where none has any.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Content(StrEnum):
    PROMOTION = "promotion"
    NEWS = "news"
    OPINION = "opinion"
    CHAT = "chat"


PROMOTION_HASHTAGS = 4
PROMOTION_LINKS = 2

TOPICS: Mapping[str, tuple[str, ...]] = {
    "health": ("virus", "hospital", "vaccine", "mask", "cases", "nurses", "symptoms", "testing", "covid", "quarantine"),
    "politics": ("election", "senate", "minister", "vote", "congress", "policy", "campaign", "parliament", "debate", "law"),
    "economy": ("market", "jobs", "stocks", "inflation", "rent", "wages", "bank", "trade", "budget", "prices"),
    "sport": ("match", "season", "goal", "league", "coach", "team", "olympics", "final", "player", "stadium"),
    "travel": ("flight", "airport", "border", "hotel", "train", "passport", "tourists", "cruise", "ticket", "visa"),
    "science": ("study", "researchers", "data", "model", "climate", "space", "lab", "genome", "telescope", "paper"),
}
OTHER_TOPIC = "other"

PRAISE = ("great", "love", "hope", "brilliant", "thankful", "proud", "safe", "kind", "better", "win")
BLAME = ("terrible", "hate", "fear", "awful", "angry", "sad", "worse", "lies", "shame", "fail")
OPINION = ("think", "believe", "feel", "guess", "honestly", "imho", "should", "wish")
REPORTING = ("breaking", "officials", "announced", "reports", "confirmed", "according", "update", "statement")
FILLERS = (
    *("the", "a", "today", "people", "this", "is", "with", "for", "now", "all", "we", "still", "home", "day", "just", "more"),
    *("el", "gente", "hoy", "casa", "le", "monde", "merci", "heute", "und", "alle"),
)
LANGUAGES = ("en", "es", "fr", "de", "pt")
