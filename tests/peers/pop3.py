#!/usr/bin/env python3
"""A mailbox to fetch from, for the tests: POP3 on loopback, any user and password, the messages given by name.
usage: pop3.py FILE...

Standard output tells the port, then "deleted NUMBER" for each message that a client has deleted and quit after. The
server ends with its input.
"""
import os, socketserver, sys, threading

MESSAGES = {number: open(name, "rb").read().replace(b"\n", b"\r\n") for number, name in enumerate(sys.argv[1:], 1)}


def dotted(message):
    return b"".join(b"." + line if line.startswith(b".") else line for line in message.splitlines(True)) + b".\r\n"


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.gone = set()
        self.wfile.write(b"+OK\r\n")
        for line in self.rfile:
            words = line.decode("latin-1").split()
            name = words[0].lower() if words else ""
            answer = getattr(self, {"pass": "user"}.get(name, name), None)
            self.wfile.write(answer(*words[1:]) if answer else b"-ERR\r\n")
            if name == "quit":
                return

    def listed(self, what, number):
        there = {n: m for n, m in MESSAGES.items() if n not in self.gone}
        if number:
            return f"+OK {number} {what(int(number))}\r\n".encode() if int(number) in there else b"-ERR\r\n"
        return b"+OK\r\n" + "".join(f"{n} {what(n)}\r\n" for n in there).encode() + b".\r\n"

    def user(self, *_):
        return b"+OK\r\n"

    noop = rset = user

    def capa(self):
        return b"+OK\r\nUSER\r\nUIDL\r\nTOP\r\n.\r\n"

    def stat(self):
        return f"+OK {len(MESSAGES)} {sum(map(len, MESSAGES.values()))}\r\n".encode()

    def list(self, number=None):
        return self.listed(lambda n: len(MESSAGES[n]), number)

    def uidl(self, number=None):
        return self.listed(lambda n: f"id{n}", number)

    def retr(self, number):
        return b"+OK\r\n" + dotted(MESSAGES[int(number)])

    def top(self, number, lines):
        head, end, body = MESSAGES[int(number)].partition(b"\r\n\r\n")
        return b"+OK\r\n" + dotted(head + end + b"".join(body.splitlines(True)[:int(lines)]))

    def dele(self, number):
        self.gone.add(int(number))
        return b"+OK\r\n"

    def quit(self):
        for number in sorted(self.gone):
            MESSAGES.pop(number)
            print("deleted", number, flush=True)
        return b"+OK\r\n"


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Session) as server:
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    os._exit(0)
