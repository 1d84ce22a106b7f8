"""The bytes of a text as Java encodes it: hashes of keys are taken over them."""


def java_utf8(text: str) -> bytes:
    """The UTF-8 bytes of a text as Java encodes it: an unpaired surrogate becomes ``?``.

    Python may hold a surrogate pair as two characters. Like Java, this function encodes a pair as one character.
    """
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass").encode("utf-8", "replace")
