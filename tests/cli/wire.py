"""A reader of protobuf's wire format, which shares no code with what wrote it."""


def fields(message):
    """The fields of a protobuf message as {number: [value]}."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            value = varint()
        elif tag & 7 == 2:
            length = varint()
            value, at = message[at : at + length], at + length
        else:
            raise ValueError(f"wire type {tag & 7}")
        found.setdefault(tag >> 3, []).append(value)
    return found
