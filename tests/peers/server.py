#!/usr/bin/env python3
"""A scoring server for the tests, with nothing but Python's standard library.  usage: server.py CONFIG (JSON)

{"mode": "threads" (HTTP/1.1, a thread per connection) | "single" (HTTP/1.1, one connection at a time) | "http10",
 "workers": so many threads in all, each stays with its connection,
 "most": closes connections beyond so many at once, unread, "unix": PATH instead of a port,
 "score": one for all messages, "py3": every `filter` ends in a fault, "rules": [...]}

A rule {"has": TEXT, "nth": N, "method": NAME, "do": WHAT, ...} is used for the first request that fits. WHAT:
  fault          a fault; its text is "text"            status   an HTTP "status" with a "location" and no XML
  hang           no answer until the test ends          close    closes without an answer
  short          promises more bytes than it sends      garbage  "text" as the body of the answer
  delay          answers after "seconds"                gather   answers once "count" requests are there at a time
  hold           answers once "release" has come on standard input

The score of a message is what stands behind "X-Score: " in it, else a checksum. Standard output tells the port (0 for a
Unix socket), then a line per event: "accept", "refuse", "request METHOD AUTHORIZATION", "held". It tells "synced" for a
line "sync" on standard input, behind all that happened before. The server ends with its input.
"""
import json, os, re, socket, sys, threading, time, zlib
from xmlrpc.client import Binary, Fault, dumps, loads

CONFIG = json.loads(sys.argv[1])
CHANGED = threading.Condition()
STATE = {"requests": 0, "busy": 0, "released": False}


def tell(text):
    with CHANGED:
        print(text, flush=True)


def score_of(message):
    found = re.search(rb"^X-Score: *([\d.]+)", message, re.M)
    if found:
        return float(found[1])
    return CONFIG["score"] if "score" in CONFIG else zlib.crc32(message) % 101 / 100


def filtered(message, score):
    """As SpamBayes gives a message back: with LF line ends and its verdict among the fields."""
    verdict = f"{'ham' if score < 0.2 else 'spam' if score > 0.9 else 'unsure'}; {score:.2f}"
    head, _, body = message.replace(b"\r\n", b"\n").partition(b"\n\n")
    return head.rstrip(b"\n") + b"\nX-Spambayes-Classification: " + verdict.encode() + b"\n\n" + body


def value(method, message):
    if method == "filter" and CONFIG.get("py3"):
        return Fault(1, "<class 'TypeError'>:a bytes-like object is required, not 'str'")
    score = score_of(message)
    return (score,) if method == "score" else (Binary(filtered(message, score)),)


def http(status, body, headers=(), length=None):
    version = "HTTP/1.0" if CONFIG.get("mode") == "http10" else "HTTP/1.1"
    head = [f"{version} {status}", "Content-Type: text/xml", f"Content-Length: {len(body) if length is None else length}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def proper(method, message):
    answer = value(method, message)
    return http("200 OK", dumps(answer, methodresponse=not isinstance(answer, Fault)).encode())


def rule_for(method, message):
    with CHANGED:
        STATE["requests"] += 1
        for rule in CONFIG.get("rules", []):
            if (rule.get("nth", STATE["requests"]) == STATE["requests"] and rule.get("method", method) == method
                    and rule.get("has", "").encode() in message):
                return rule
    return {"do": "answer"}


def play(rule, method, message):
    """The bytes to send, and whether the connection stays."""
    what = rule["do"]
    if what == "hang":
        threading.Event().wait()
    if what == "close":
        return b"", False
    if what == "fault":
        return http("200 OK", dumps(Fault(1, rule.get("text", "out of order"))).encode()), True
    if what == "status":
        return http(rule["status"], b"", [f"Location: {rule['location']}"] if "location" in rule else []), True
    if what == "short":
        return proper(method, message)[:-60], False
    if what == "garbage":
        return http("200 OK", rule["text"].encode()), True
    if what == "delay":
        time.sleep(rule["seconds"])
    if what == "hold":
        tell("held")
        with CHANGED:
            CHANGED.wait_for(lambda: STATE["released"])
    if what == "gather":
        with CHANGED:
            STATE["most"] = max(STATE.get("most", 0), STATE["busy"])
            CHANGED.notify_all()
            CHANGED.wait_for(lambda: STATE["most"] >= rule["count"], timeout=30)
    return proper(method, message), True


def one_request(connection, reader):
    """Answers one request; returns whether the connection stays."""
    line, headers = reader.readline(65536), {}
    if not line.strip():
        return False
    for header in iter(lambda: reader.readline(65536).strip(), b""):
        name, _, text = header.partition(b":")
        headers[name.strip().lower()] = text.strip()
    body = reader.read(int(headers.get(b"content-length", 0)))
    (message,), method = loads(body)
    message = message.data if isinstance(message, Binary) else message.encode()
    with CHANGED:
        STATE["busy"] += 1
    tell(f"request {method} {headers.get(b'authorization', b'-').decode('latin-1')}")
    data, stays = play(rule_for(method, message), method, message)
    connection.sendall(data)
    with CHANGED:
        STATE["busy"] -= 1
    return stays and CONFIG.get("mode") != "http10" and headers.get(b"connection", b"").lower() != b"close"


def is_too_many():
    with CHANGED:
        STATE["open"] = STATE.get("open", 0) + 1
        return STATE["open"] > CONFIG.get("most", STATE["open"])


def serve(connection):
    with connection:
        if is_too_many():
            tell("refuse")
        else:
            serve_all(connection)
    with CHANGED:
        STATE["open"] -= 1


def serve_all(connection):
    tell("accept")
    if "unix" not in CONFIG:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection.makefile("rb") as reader:
        try:
            while one_request(connection, reader):
                pass
        except OSError:
            pass


def accept_all(listener):
    while True:
        connection, _ = listener.accept()
        if CONFIG.get("mode", "threads") == "threads" and "workers" not in CONFIG:
            threading.Thread(target=serve, args=(connection,), daemon=True).start()
        else:
            serve(connection)


def main():
    if "unix" in CONFIG:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(CONFIG["unix"])
    else:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    tell(0 if "unix" in CONFIG else listener.getsockname()[1])
    for _ in range(CONFIG.get("workers", 1)):
        threading.Thread(target=accept_all, args=(listener,), daemon=True).start()
    for line in sys.stdin:
        if line == "sync\n":
            tell("synced")
            continue
        with CHANGED:
            STATE["released"] = True
            CHANGED.notify_all()
    os._exit(0)


if __name__ == "__main__":
    main()
