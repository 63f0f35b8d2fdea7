"""The forms of Kubernetes' names and amounts."""

import fractions
import re

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
NUMBER = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def is_label(text):
    return len(text) <= 63 and LABEL.fullmatch(text) is not None


def is_subdomain(text):
    return len(text) <= 253 and SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text):
    prefix, slash, name = text.rpartition("/")
    return (not slash or is_subdomain(prefix)) and 0 < len(name) <= 63 and LABEL_VALUE.fullmatch(name) is not None


def quantity(text):
    """Returns a quantity's value, or None if the text is not a quantity."""
    match = NUMBER.fullmatch(str(text))
    if not match:
        return None
    number = fractions.Fraction(match[1])
    if match[2]:
        return number * fractions.Fraction(10) ** int(match[2][1:])
    suffix = match[3] or ""
    return number * 2 ** BINARY[suffix] if suffix in BINARY else number * fractions.Fraction(10) ** DECIMAL[suffix]


def at_least(value, least, path):
    if value is not None and value < least:
        yield path, f"{value} is less than {least}"


def one_of(value, known, path):
    if value is not None and value not in known:
        yield path, f"{value!r} is none of {', '.join(map(repr, known))}"
