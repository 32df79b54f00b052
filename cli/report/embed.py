"""Makes C++ of the page's source, so that the program needs no file beside it.

usage: embed.py OUT.cc NAME PAGE.html STYLE.css SCRIPT.js...

It is kNAMEPage there. In the page STYLE, SCRIPT, HEAD and DATA stand where each goes, as `@STYLE@`. The scripts are joined in the order given.
"""

import re
import sys

MOST_LITERAL = 8000  # characters; compilers limit a literal's length


def text(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


def literal(content):
    pieces = [content[i : i + MOST_LITERAL] for i in range(0, len(content), MOST_LITERAL)]
    return "\n".join(f'R"reprise({piece})reprise"' for piece in pieces)


def main(out, name, page, style, *scripts):
    script = "".join(text(path) for path in scripts)
    parts = re.split("(@STYLE@|@SCRIPT@)", text(page))
    whole = "".join({"@STYLE@": text(style), "@SCRIPT@": script}.get(part, part) for part in parts)
    begin, rest = whole.split("@HEAD@")
    middle, end = rest.split("@DATA@")
    with open(out, "w", encoding="utf-8") as source:
        source.write('#include "cli/report/page_source.h"\n\nnamespace reprise::cli {\n\n')
        parts = ",\n".join(literal(part) for part in (begin, middle, end))
        source.write(f"const PageSource k{name}Page = {{\n{parts}}};\n\n}}  // namespace reprise::cli\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
