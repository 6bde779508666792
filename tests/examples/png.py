"""As much of PNG as a browser's screenshot needs: eight bits for each of three or four channels."""

import struct
import zlib


class Image:
    def __init__(self, data):
        header, pixels = b"", b""
        for kind, body in chunks(data):
            if kind == b"IHDR":
                header = body
            elif kind == b"IDAT":
                pixels += body
        self.width, self.height, depth, colours, _, _, interlaced = struct.unpack(">IIBBBBB", header)
        if depth != 8 or colours not in (2, 6) or interlaced:
            raise ValueError("a kind of PNG that browsers do not write")
        self.channels = 3 if colours == 2 else 4
        self.rows = unfiltered(zlib.decompress(pixels), self.width * self.channels, self.channels)

    def colours(self, left, top, right, bottom):
        """How often each colour, (red, green, blue), is found in the rectangle."""
        found = {}
        for row in self.rows[top:bottom]:
            for at in range(left * self.channels, right * self.channels, self.channels):
                colour = (row[at], row[at + 1], row[at + 2])
                found[colour] = found.get(colour, 0) + 1
        return found


def chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        yield kind, data[at + 8:at + 8 + size]
        at += size + 12


def paeth(left, above, corner):
    guess = left + above - corner
    return min((left, above, corner), key=lambda one: abs(guess - one))


def unfiltered(data, width, step):
    """Each row is told as what it adds to its neighbours: 0 nothing, 1 left, 2 above, 3 the mean of
    both, 4 the likeliest."""
    rows, above = [], bytearray(width)
    for start in range(0, len(data), width + 1):
        kind, row = data[start], bytearray(data[start + 1:start + 1 + width])
        for at in range(width if kind else 0):
            left = row[at - step] if at >= step else 0
            if kind == 1:
                guess = left
            elif kind == 2:
                guess = above[at]
            elif kind == 3:
                guess = (left + above[at]) // 2
            else:
                guess = paeth(left, above[at], above[at - step] if at >= step else 0)
            row[at] = (row[at] + guess) & 255
        rows.append(row)
        above = row
    return rows
