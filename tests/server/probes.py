# SPDX-License-Identifier: MIT
"""A table of malformed and ambiguous requests.

Each row would feed eight bytes to the engine `probe`, or create or delete something, if one of its
flaws were overlooked.  `refused` rows may get any error or a close, never a 2xx.  `lenient` rows
are those where RFC 9112 lets a server choose: they may also be accepted as what they say. %H stands
for the server's own host.
"""

CRLF = b"\r\n"
FEED = b"/v1/engines/probe/feed"
EIGHT = b"12345678"


def post(*lines, target=FEED, host=b"Host: %H", version=b"HTTP/1.1", method=b"POST", body=EIGHT):
    """A feed with these header lines."""
    head = [method + b" " + target + b" " + version] + ([host] if host else []) + list(lines)
    return CRLF.join(head) + CRLF + CRLF + body


def chunks(body, *lines):
    return post(b"Transfer-Encoding: chunked", *lines, body=body)


LENGTH = b"Content-Length: 8"
SMUGGLED = b"DELETE /v1/engines/probe HTTP/1.1\r\nHost: %H\r\n\r\n"

FRAMING = {
    "length and chunked": post(LENGTH, b"Transfer-Encoding: chunked", body=b"0\r\n\r\n" + EIGHT),
    "chunked and length": post(b"Transfer-Encoding: chunked", LENGTH,
                               body=b"8\r\n12345678\r\n0\r\n\r\n"),
    "smuggled behind a length": post(b"Content-Length: 0", b"Transfer-Encoding: chunked",
                                     body=b"0\r\n\r\n" + SMUGGLED),
    "two lengths": post(LENGTH, b"Content-Length: 4"),
    "two lengths alike": post(LENGTH, LENGTH),
    "lengths in a list": post(b"Content-Length: 8, 8"),
    "lengths in a list, unlike": post(b"Content-Length: 8, 4"),
    "two hosts": post(LENGTH, b"Host: %H"),
    "two hosts, unlike": post(LENGTH, b"Host: example.org"),
    "no host": post(LENGTH, host=None),
    "an empty host": post(LENGTH, host=b"Host:"),
    "a blank before the colon": post(b"Content-Length : 8"),
    "a tab before the colon": post(b"Content-Length\t: 8"),
    "a blank before a known name": post(LENGTH, b" Transfer-Encoding: chunked"),
    "a plus": post(b"Content-Length: +8"),
    "a minus": post(b"Content-Length: -8"),
    "a minus zero": post(b"Content-Length: -0", body=b""),
    "hex": post(b"Content-Length: 0x8"),
    "a fraction": post(b"Content-Length: 8.0"),
    "an exponent": post(b"Content-Length: 8e0"),
    "a word": post(b"Content-Length: eight"),
    "no number": post(b"Content-Length:"),
    "a blank within": post(b"Content-Length: 0 8"),
    "a quoted length": post(b'Content-Length: "8"'),
    "a length with an underscore": post(b"Content-Length: 0_8"),
    "a length of 2^63": post(b"Content-Length: 9223372036854775808"),
    "a length of 2^64": post(b"Content-Length: 18446744073709551616"),
    "a length of 2^64 + 8": post(b"Content-Length: 18446744073709551624"),
    "a length of many digits": post(b"Content-Length: " + b"9" * 300),
    "identity": post(b"Transfer-Encoding: identity"),
    "identity and a length": post(LENGTH, b"Transfer-Encoding: identity"),
    "gzip": post(b"Transfer-Encoding: gzip"),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"),
    "chunked, identity": post(b"Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n"),
    "chunked, chunked": post(b"Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    "chunked twice": chunks(b"0\r\n\r\n", b"Transfer-Encoding: chunked"),
    "xchunked": post(b"Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "chunked with a parameter": post(b"Transfer-Encoding: chunked;q=1", body=b"0\r\n\r\n"),
    "chunked after a vertical tab": post(b"Transfer-Encoding: \x0bchunked", body=b"0\r\n\r\n"),
    "an empty coding": post(b"Transfer-Encoding:", LENGTH),
    "chunked in HTTP/1.0": post(b"Transfer-Encoding: chunked", version=b"HTTP/1.0",
                                body=b"8\r\n12345678\r\n0\r\n\r\n"),
    "Transfer_Encoding": post(LENGTH, b"Transfer_Encoding : chunked"),
}

CHUNKS = {
    "a negative chunk": chunks(b"-8\r\n12345678\r\n0\r\n\r\n"),
    "a chunk with 0x": chunks(b"0x8\r\n12345678\r\n0\r\n\r\n"),
    "a chunk with a plus": chunks(b"+8\r\n12345678\r\n0\r\n\r\n"),
    "a chunk of 2^64": chunks(b"10000000000000000\r\n12345678\r\n0\r\n\r\n"),
    "a chunk of 2^64 + 8": chunks(b"10000000000000008\r\n12345678\r\n0\r\n\r\n"),
    "a chunk of many digits": chunks(b"f" * 100 + b"\r\n12345678\r\n0\r\n\r\n"),
    "a chunk extension with a zero": chunks(b"8;a\0b\r\n12345678\r\n0\r\n\r\n"),
    "a chunk extension with a return": chunks(b"8;a\rb\r\n12345678\r\n0\r\n\r\n"),
    "a chunk extension without end": chunks(b"8;" + 200_000 * b"x"),
    "a chunk's size without end": chunks(200_000 * b"0"),
    "a chunk without its end": chunks(b"8\r\n123456780\r\n\r\n"),
    "a chunk that is longer than it says": chunks(b"4\r\n12345678\r\n0\r\n\r\n"),
    "a chunk's size is a word": chunks(b"eight\r\n12345678\r\n0\r\n\r\n"),
    "a chunk's size is missing": chunks(b"\r\n12345678\r\n0\r\n\r\n"),
    "a chunk's size and a blank": chunks(b"8 8\r\n12345678\r\n0\r\n\r\n"),
    "a chunk's size after a blank": chunks(b" 8\r\n12345678\r\n0\r\n\r\n"),
    "a chunk's size ends with LF and a zero": chunks(b"8\0\n12345678\r\n0\r\n\r\n"),
    "chunks that end within one": chunks(b"8\r\n1234"),
    "chunks without the last": chunks(b"8\r\n12345678\r\n"),
    "half of the last chunk": chunks(b"8\r\n12345678\r\n0\r\n"),
}

HEADERS = {
    "a folded line": post(LENGTH, b"X-Long: a", b" b"),
    "a folded line with a tab": post(LENGTH, b"X-Long: a", b"\tb"),
    "a first line that is folded": post(b" X: y", LENGTH, host=None),
    "a line without a colon": post(LENGTH, b"Colonless"),
    "an empty name": post(LENGTH, b": empty"),
    "a blank for a name": post(LENGTH, b" : empty"),
    "a name with a blank": post(LENGTH, b"A b: c"),
    "a name with a slash": post(LENGTH, b"A/b: c"),
    "a name with a parenthesis": post(LENGTH, b"A(b): c"),
    "a name in 8 bits": post(LENGTH, b"A\xe4: c"),
    "a name with a zero": post(LENGTH, b"A\0b: c"),
    "a value with a zero": post(LENGTH, b"A: b\0c"),
    "a value with a bell": post(LENGTH, b"A: b\x07c"),
    "a value with DEL": post(LENGTH, b"A: b\x7fc"),
    "a value with a bare CR": post(LENGTH, b"A: b\rc"),
    "a bare CR before a name": post(LENGTH, b"A: b\rTransfer-Encoding: chunked"),
    "bare LF all through": post(LENGTH).replace(CRLF, b"\n"),
    "bare CR all through": post(LENGTH).replace(CRLF, b"\r"),
    "a bare LF between two lines": post(LENGTH, b"A: b\nB: c"),
    "LF CR": post(LENGTH).replace(CRLF, b"\n\r"),
    "5000 headers": post(LENGTH, *[b"X-%d: y" % k for k in range(5000)]),
    "one header of 200 KB": post(LENGTH, b"X: " + b"y" * 200_000),
    "a name of 200 KB": post(LENGTH, b"X" * 200_000 + b": y"),
    "a host of 60 KB": post(LENGTH, host=b"Host: " + b"x" * 60_000),
    "a host with a path": post(LENGTH, host=b"Host: %H/x"),
    "a host with a user": post(LENGTH, host=b"Host: a@%H"),
    "a host with a blank": post(LENGTH, host=b"Host: %H x"),
    "a host with a comma": post(LENGTH, host=b"Host: %H, %H"),
    "a host in a list": post(LENGTH, host=b"Host: %H,example.org"),
    "a port of letters": post(LENGTH, host=b"Host: 127.0.0.1:http"),
    "a port too many": post(LENGTH, host=b"Host: %H:80"),
    "another name": post(LENGTH, host=b"Host: example.org"),
    "a name that begins as ours": post(LENGTH, host=b"Host: 127.0.0.1.example.org"),
    "a number for an address": post(LENGTH, host=b"Host: 2130706433"),
    "an unknown expectation": post(LENGTH, b"Expect: 200-maybe"),
}

TARGETS = {
    "absolute, another host": post(LENGTH, target=b"http://example.org" + FEED),
    "absolute, another scheme": post(LENGTH, target=b"ftp://%H" + FEED),
    "an authority": post(LENGTH, target=b"%H"),
    "a star": post(LENGTH, target=b"*"),
    "no slash": post(LENGTH, target=FEED[1:]),
    "an empty target": post(LENGTH, target=b""),
    "a question alone": post(LENGTH, target=b"?dtype=u32"),
    "a fragment": post(LENGTH, target=FEED + b"#x"),
    "8 bits": post(LENGTH, target=FEED + b"\xe4"),
    "UTF-8": post(LENGTH, target=b"/v1/engines/pr\xc3\xb6be/feed"),
    "a zero": post(LENGTH, target=FEED + b"\0"),
    "an escaped zero": post(LENGTH, target=FEED + b"%00"),
    "an escaped zero in a query": post(LENGTH, target=FEED + b"?dtype=u32%00"),
    "half an escape": post(LENGTH, target=FEED + b"%2"),
    "an invalid escape": post(LENGTH, target=FEED + b"%zz"),
    "an escaped slash": post(LENGTH, target=b"/v1/engines%2fprobe/feed"),
    "an escaped slash in the name": post(LENGTH, target=b"/v1/engines/x%2f..%2fprobe/feed"),
    "dots": post(LENGTH, target=b"/v1/engines/x/../probe/feed"),
    "escaped dots": post(LENGTH, target=b"/v1/engines/x/%2e%2e/probe/feed"),
    "a backslash": post(LENGTH, target=b"/v1/engines\\probe\\feed"),
    "a semicolon": post(LENGTH, target=b"/v1/engines/probe;x/feed"),
    "two slashes": post(LENGTH, target=b"//v1/engines/probe/feed"),
    "a double escape": post(LENGTH, target=b"/v1/engines/pro%2562e/feed"),
    "a blank in the target": post(LENGTH, target=FEED + b" x"),
    "a tab in the target": post(LENGTH, target=FEED + b"\tx"),
    "a control character in the target": post(LENGTH, target=FEED + b"\x01"),
    "DEL in the target": post(LENGTH, target=FEED + b"\x7f"),
    "a target of 200 KB": post(LENGTH, target=FEED + b"?" + b"x" * 200_000),
    "a path of 200 KB": post(LENGTH, target=b"/" + b"x" * 200_000),
    "300 queries": post(LENGTH, target=FEED + b"?" + b"&".join(b"a%d=1" % k for k in range(300))),
}

LINES = {
    "lower case": post(LENGTH, method=b"post"),
    "an unknown method": post(LENGTH, method=b"FEED"),
    "an empty method": post(LENGTH, method=b""),
    "a method with a colon": post(LENGTH, method=b"PO:ST"),
    "a method of 10 KB": post(LENGTH, method=b"P" * 10_000),
    "two blanks": post(LENGTH).replace(b"POST ", b"POST  ").replace(b" HTTP/", b"  HTTP/"),
    "tabs for blanks": post(LENGTH).replace(b"POST ", b"POST\t").replace(b" HTTP/", b"\tHTTP/"),
    "a leading blank": b" " + post(LENGTH),
    "a leading tab": b"\t" + post(LENGTH),
    "a leading zero": b"\0" + post(LENGTH),
    "a trailing blank": post(LENGTH, version=b"HTTP/1.1 "),
    "no version": b"POST " + FEED + b"\r\nHost: %H\r\nContent-Length: 8\r\n\r\n" + EIGHT,
    "HTTP/0.9": b"GET /v1/engines\r\n",
    "HTTP/0.9 by name": post(LENGTH, version=b"HTTP/0.9"),
    "HTTP/1.2": post(LENGTH, version=b"HTTP/1.2"),
    "HTTP/2.0": post(LENGTH, version=b"HTTP/2.0"),
    "HTTP/3": post(LENGTH, version=b"HTTP/3"),
    "HTTP/1.10": post(LENGTH, version=b"HTTP/1.10"),
    "HTTP/01.1": post(LENGTH, version=b"HTTP/01.1"),
    "HTTP/1": post(LENGTH, version=b"HTTP/1"),
    "http/1.1": post(LENGTH, version=b"http/1.1"),
    "HTTP/1,1": post(LENGTH, version=b"HTTP/1,1"),
    "ICY": post(LENGTH, version=b"ICY/1.1"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a proxy's preface": b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\n" + post(LENGTH),
    "CONNECT": b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: %H\r\n\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\nHost: %H\r\n\r\n",
    "OPTIONS *": b"OPTIONS * HTTP/1.1\r\nHost: %H\r\n\r\n",
}

SILENT = {  # all of these are incomplete headers: the header timeout ends them
    "nothing but blank lines": CRLF * 5,
    "half a line": b"POST /v1/engines/probe/fe",
    "a header without its end": post(LENGTH, body=b"")[:-2],
    "TLS hello": bytes.fromhex("16030100c8010000c40303") + bytes(range(189)) + bytes(10),
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "a zero": b"\0",
    "zeros": bytes(5000),
    "a binary preface": b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a!\x11\0\x0c" + bytes(12),
}

# RFC 9112 lets a server take these (section 6.3: without a length there is no body, and what looks
# like one is the next request, here a malformed one; 2.2: an empty line before the request; 7.1.1:
# unknown chunk extensions are to be passed over; 7.1.2: trailers may be dropped; 3.2.2:
# the absolute form is to be taken; 2.3 with RFC 9110 2.5: a client of HTTP/1.0 need not send Host).
LENIENT = {
    "a body without a length": post(),
    "a leading empty line": CRLF + post(LENGTH),
    "a chunk extension": chunks(b"8;a=b\r\n12345678\r\n0\r\n\r\n"),
    "a chunk extension in quotes": chunks(b'8;a="b c"\r\n12345678\r\n0;x\r\n\r\n'),
    "leading zeros of a chunk": chunks(b"00008\r\n12345678\r\n000\r\n\r\n"),
    "a trailer": chunks(b"8\r\n12345678\r\n0\r\nX-Sum: 1\r\n\r\n"),
    "absolute, this host": post(LENGTH, target=b"http://%H" + FEED),
    "HTTP/1.0": post(LENGTH, version=b"HTTP/1.0"),
    "leading zeros of a length": post(b"Content-Length: 0008"),
    "blanks around a value": post(b"Content-Length: \t 8 \t"),
    "a coding in capitals": post(b"Transfer-Encoding: CHUNKED", body=b"8\r\n12345678\r\n0\r\n\r\n"),
}

REFUSED = {**FRAMING, **CHUNKS, **HEADERS, **TARGETS, **LINES}
