#!/usr/bin/env python3
"""Writes a mailbox of made-up mail to standard output.

usage: generate.py [--messages N] [--seed N] [--median BYTES] [--bytes SIZE]

The same options give the same bytes on every machine: of the random module only random() is used, which Python promises
to keep. --bytes (suffixes K, M, G) repeats the messages, whole ones only, until the mailbox is about that large.
"""
import argparse, base64, math, quopri, random, sys, time

PEOPLE = [("Ada Brandt", "ada@brandt.example"), ("Bruno Keller", "bruno.keller@mail.example"), ("Chioma Eze", "chioma@eze.example"),
          ("Dag Hansen", "dag@fjord.example"), ("Emi Tanaka", "emi@tanaka.example"), ("Farid Amini", "farid@amini.example"),
          ("Greta Lind", "greta@lind.example"), ("Hugo Sanz", "hugo@sanz.example")]
ACCENTED = ["Zoë", "Käthe", "José", "Søren", "Anaïs", "Łukasz"]
NOUNS = ("garden ladder kettle bicycle choir harbour letter window invoice map lantern orchard piano recipe station ticket "
         "violin workshop notebook market bridge compiler parser queue socket buffer index release patch meeting train").split()
VERBS = "found moved painted repaired forgot measured carried sold borrowed tested rewrote merged shipped posted opened closed".split()
PLACES = "by the river|in the shed|at the office|on the second floor|near the station|behind the church|in the branch|at home".split("|")
TIMES = "yesterday|this morning|on Tuesday|before lunch|last week|in the evening|on the 14th|after the rain".split("|")
TAILS = ["and nobody noticed.", "which took longer than I thought.", "so we can go on tomorrow.", "but the old one is still there.",
         "as you had asked.", "and it was cheaper than the last.", "so please have a look.", "and I would do it again."]
LATIN = ["Grüße aus Köln, wo es heute stürmt.", "L'été a été très agréable là-bas.", "Smørrebrød og kaffe klokken tre.",
         "¿Mañana por la mañana, o el año que viene?", "Der Schlüssel hängt überm Türrahmen."]


class Maker:
    def __init__(self, seed, median):
        self.random, self.median, self.number = random.Random(seed).random, median, 0

    def pick(self, things):
        return things[int(self.random() * len(things))]

    def below(self, limit):
        return int(self.random() * limit)

    def size(self):
        """Log-normal, as mail is: most is short, a few are very long."""
        normal = math.sqrt(-2 * math.log(1 - self.random())) * math.cos(2 * math.pi * self.random())
        return int(min(120_000, max(200, self.median * math.exp(1.05 * normal))))

    def sentence(self):
        subject = self.pick(["I", "We", "She", "My brother", "The others", self.pick(PEOPLE)[0].split()[0]])
        return " ".join([subject, self.pick(VERBS), "the", self.pick(NOUNS), self.pick(PLACES), self.pick(TIMES), self.pick(TAILS)])

    def prose(self, size, extra=()):
        """Lines of text, about `size` bytes, with empty lines between paragraphs."""
        lines, done, line = [], 0, ""
        while done < size:
            for word in (self.pick(extra) if extra and self.random() < 0.3 else self.sentence()).split():
                if len(line) + len(word) > 70:
                    lines.append(line)
                    done, line = done + len(line) + 1, ""
                line += (" " if line else "") + word
            if self.random() < 0.15:
                lines += [line, ""]
                done, line = done + len(line) + 2, ""
        return "\n".join(lines + [line]) + "\n"

    def stamp(self):
        """Seconds since 1970: about an hour from one message to the next, from the year 2003 on."""
        return 1_041_379_200 + self.number * 3600 + self.number * 811 % 3000

    def header(self, kind, subject, more):
        (name, sender), (_, to) = self.pick(PEOPLE), self.pick(PEOPLE)
        sent = time.gmtime(self.stamp())
        date = time.strftime("%d ", sent) + "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()[sent.tm_mon - 1]
        date = "Mon Tue Wed Thu Fri Sat Sun".split()[sent.tm_wday] + ", " + date + time.strftime(" %Y %H:%M:%S +0000", sent)
        self.envelope = "MAILER-DAEMON" if kind == "bounce" else sender
        lines = [f"Return-Path: <{'' if kind == 'bounce' else sender}>"]
        for hop in range(1 + self.below(4)):
            lines.append(f"Received: from relay{hop}.example (relay{hop}.example [192.0.2.{self.below(250) + 1}])\n"
                         f"\tby mx{hop}.example (Postfix) with ESMTP id {self.below(1 << 40):X}\n\tfor <{to}>; {date}")
        if kind == "bounce":
            name, sender = "Mail Delivery System", "MAILER-DAEMON@mx0.example"
        lines += [f"From: {name} <{sender}>", f"To: {to}", f"Subject: {subject}", f"Date: {date}",
                  f"Message-ID: <{self.number}.{self.below(1 << 32):08x}@{sender.split('@')[1]}>"]
        if self.random() < 0.2:
            references = "\n ".join(f"<{self.below(1 << 32):08x}.{hop}@mail.example>" for hop in range(3 + self.below(12)))
            lines.append("References: " + references)
        return "\n".join(lines + more) + "\n\n"

    def note(self, size):
        return self.header("note", self.pick(NOUNS).title() + " " + self.pick(TIMES), []) + self.prose(size) + "\n-- \n" + self.pick(PEOPLE)[0] + "\n"

    def latin1(self, size):
        more = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=iso-8859-1", "Content-Transfer-Encoding: 8bit"]
        text = self.header("latin1", "Gr=?iso-8859-1?Q?=FC=DFe?= " + self.pick(TIMES), more) + self.prose(size, LATIN)
        return text.encode("latin-1")

    def utf8(self, size):
        more = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: 8bit"]
        subject = "=?utf-8?B?" + base64.b64encode((self.pick(ACCENTED) + " " + self.pick(NOUNS)).encode()).decode() + "?="
        return self.header("utf8", subject, more) + self.prose(size, LATIN + [f"{name} kommt — um 7 …" for name in ACCENTED])

    def quoted(self, size):
        more = ["MIME-Version: 1.0", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: quoted-printable"]
        body = quopri.encodestring(self.prose(size * 3 // 4, LATIN).encode()).decode()
        return self.header("quoted", "Re: " + self.pick(NOUNS), more) + body

    def html(self, size):
        rows = []
        while sum(map(len, rows)) < size:
            rows.append(f'<tr><td bgcolor="#{self.below(1 << 24):06x}"><a href="http://news.example/{self.below(99999)}?u={self.number}">'
                        f'<b>{self.pick(NOUNS).upper()}</b></a><br>\n<font size="2">{self.sentence()}</font></td></tr>\n')
        return "<html><head><title>News</title></head>\n<body><table>\n" + "".join(rows) + "</table></body></html>\n"

    def newsletter(self, size):
        more = ["MIME-Version: 1.0", 'Content-Type: text/html; charset="us-ascii"', "List-Unsubscribe: <mailto:leave@news.example>",
                "Precedence: bulk"]
        return self.header("newsletter", "The " + self.pick(NOUNS).title() + " Weekly, issue " + str(self.number), more) + self.html(size)

    def alternative(self, size):
        outer, inner = f"=_outer_{self.number}", f"=_inner_{self.number}"
        more = ["MIME-Version: 1.0", f'Content-Type: multipart/mixed;\n\tboundary="{outer}"']
        image = base64.encodebytes(bytes(self.below(256) for _ in range(size // 4))).decode()
        return self.header("alternative", "Pictures of the " + self.pick(NOUNS), more) + (
            f"This is a message in several parts.\n\n--{outer}\nContent-Type: multipart/alternative; boundary=\"{inner}\"\n\n"
            f"--{inner}\nContent-Type: text/plain; charset=us-ascii\n\n{self.prose(size // 4)}\n"
            f"--{inner}\nContent-Type: text/html; charset=us-ascii\n\n{self.html(size // 4)}\n--{inner}--\n\n"
            f"--{outer}\nContent-Type: image/png; name=\"{self.pick(NOUNS)}.png\"\nContent-Transfer-Encoding: base64\n"
            f"Content-Disposition: attachment\n\n{image}\n--{outer}--\n")

    def attachment(self, size):
        boundary = f"----=_Part_{self.number}_{self.below(1 << 30)}"
        more = ["MIME-Version: 1.0", f"Content-Type: multipart/mixed; boundary=\"{boundary}\""]
        data = base64.encodebytes(bytes(self.below(256) for _ in range(size * 2 // 3))).decode()
        return self.header("attachment", self.pick(NOUNS) + ".pdf", more) + (
            f"--{boundary}\nContent-Type: text/plain\n\n{self.prose(200)}\n--{boundary}\n"
            f"Content-Type: application/pdf; name=\"{self.pick(NOUNS)}.pdf\"\nContent-Transfer-Encoding: base64\n\n{data}--{boundary}--\n")

    def bounce(self, size):
        boundary = f"bounce.{self.number}/mx0.example"
        more = ["Auto-Submitted: auto-replied", "MIME-Version: 1.0",
                f"Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"{boundary}\""]
        head = self.header("bounce", "Undelivered Mail Returned to Sender", more)
        envelope, returned = self.envelope, self.note(size // 2)
        self.envelope = envelope
        return head + (f"--{boundary}\nContent-Type: text/plain\n\nThe message could not be delivered.\n\n<nobody@gone.example>: unknown user\n\n"
                       f"--{boundary}\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx0.example\n\n"
                       f"Final-Recipient: rfc822; nobody@gone.example\nAction: failed\nStatus: 5.1.1\n\n"
                       f"--{boundary}\nContent-Type: message/rfc822\n\n{returned}\n--{boundary}--\n")

    def patch(self, size):
        name, lines = self.pick(NOUNS), []
        while sum(map(len, lines)) < size:
            lines += [f"@@ -{self.below(900)},3 +{self.below(900)},4 @@ {self.pick(VERBS)}_{self.pick(NOUNS)}()", f" \tstruct {self.pick(NOUNS)} *next;",
                      f"-\t{self.pick(VERBS)}({self.pick(NOUNS)}, 0);", f"+\t{self.pick(VERBS)}({self.pick(NOUNS)}, {self.below(99)});",
                      f"+\treturn {self.pick(NOUNS)};", " }"]
        more = [f"In-Reply-To: <{self.below(1 << 32):08x}@list.example>", "List-Id: Developers <dev.list.example>"]
        return self.header("patch", f"[PATCH v{1 + self.below(4)}] {name}: {self.pick(VERBS)} the {self.pick(NOUNS)}", more) + (
            self.prose(300) + f"\nSigned-off-by: {PEOPLE[0][0]} <{PEOPLE[0][1]}>\n---\n {name}.c | 9 ++++-----\n\n"
            f"--- a/{name}.c\n+++ b/{name}.c\n" + "\n".join(lines) + "\n-- \n2.1\n")

    def long_header(self, size):
        keys = ";\n\t".join(f"k{number}={self.below(1 << 60):015x}" for number in range(10 + self.below(30)))
        names = ",\n ".join(f"{name} <{address}>" for name, address in PEOPLE * (1 + self.below(4)))
        return self.header("long", self.sentence(), [f"DKIM-Signature: v=1; a=rsa-sha256; d=mail.example;\n\t{keys}", f"Cc: {names}"]) + self.prose(size)

    def message(self):
        """One message with its From_ line and the empty line behind it."""
        self.number += 1
        kinds = [self.note] * 6 + [self.newsletter] * 4 + [self.patch] * 3 + [self.alternative] * 2 + [
            self.attachment, self.quoted, self.quoted, self.latin1, self.utf8, self.bounce, self.long_header]
        # The first ones are one of each kind, so that a small mailbox has them all.
        kind = list(dict.fromkeys(kinds))[self.number - 1] if self.number <= len(set(kinds)) else self.pick(kinds)
        text = kind(self.size())
        text = text if isinstance(text, bytes) else text.encode()
        # Python's asctime is not touched by the locale.
        separator = f"From {self.envelope} {time.asctime(time.gmtime(self.stamp()))}\n".encode()
        return separator + b"\n".join(b">" + line if line.startswith(b"From ") else line for line in text.split(b"\n")) + b"\n"


def number_of_bytes(text):
    shift = {"K": 10, "M": 20, "G": 30}.get(text[-1:].upper(), 0)
    return int(text[:-1] if shift else text) << shift


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Writes a mailbox of made-up mail to standard output.")
    options.add_argument("--messages", type=int, default=289)
    options.add_argument("--seed", type=int, default=2004)
    options.add_argument("--median", type=int, default=2300, help="of the bodies' sizes")
    options.add_argument("--bytes", type=number_of_bytes, default=0)
    options = options.parse_args()
    maker = Maker(options.seed, options.median)
    messages = [maker.message() for _ in range(options.messages)]
    block, left = b"".join(messages), options.bytes
    sys.stdout.buffer.write(block if not left else b"")
    while left >= len(block):
        sys.stdout.buffer.write(block)
        left -= len(block)
    for message in messages if left else []:
        if len(message) > left:
            break
        sys.stdout.buffer.write(message)
        left -= len(message)
