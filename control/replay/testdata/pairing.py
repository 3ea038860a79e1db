"""Which queue pair sends a flow, worked out once more: RDMA-CM exactly, and for ports and PSNs whether the evidence that is claimed holds.

Numbers and layouts are from the specifications: IBTA 9.7 (PSNs), 12.6 (communication management), 13.4.3 (MADs); and, for the port, from
Linux: rdma_calc_flow_label and rdma_flow_label_to_udp_sport.
"""
import collections
import struct

REQ, REJ, REP, DREQ = 0x10, 0x12, 0x13, 0x15
UD_SEND_ONLY, UC = 0x64, 1
PSNS = 1 << 24
UNSEEN = 64        # requests in front of the first one seen that a response may still be to: lost before, or overtaken
ENOUGH = 4         # responses to different PSNs, where the port is not the formula's
LINGER = 10**9     # ns that packets still belong to a connection that was released


def symmetric_port(a, b):
    """The UDP source port of a connection between these two QPs, in both directions."""
    v = a * b
    v ^= v >> 20
    v ^= v >> 40
    return v & 0x3fff ^ v >> 14 & 0x3f | 0xc000


class Message:
    """A communication management message in a frame; kind None where there is none."""

    def __init__(self, f):
        mad = f.octets[f.bth_at + 20:] if f.roce else b""
        self.kind = None
        if not f.roce or (f.opcode, f.qp, f.source_qp) != (UD_SEND_ONLY, 1, 1) or len(mad) < 256 or mad[:4] != b"\1\7\2\3":
            return
        kind, = struct.unpack_from("!H", mad, 16)
        if not 0x10 <= kind <= 0x18:
            return
        self.kind, body = kind, mad[24:]
        self.local, self.remote = struct.unpack_from("!II", body)
        self.qp = struct.unpack_from("!I", body, {REQ: 32, REP: 12, DREQ: 8}.get(kind, 0))[0] >> 8
        self.gids = body[56:72], body[72:88]


def gid(address):
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


class CM:
    """The connections that RDMA-CM sets up: who sends to a flow's destination QP, from the REP on, until the DREQ.

    A side counts only if its messages come in by the one port, and its peer's by the other.
    """

    def __init__(self, peer):
        self.peer, self.asked, self.connections, self.messages = peer, {}, {}, 0

    def hear(self, f, port):
        """Takes a message; returns the flows (source, destination, QP, port, VLANs) that have become known, with their source QP, and
        those that have ended."""
        m = Message(f)
        self.messages += m.kind is not None
        mine, theirs = (f.src, f.dst, port, f.vlans), (f.dst, f.src, self.peer[port], f.vlans)
        if m.kind == REQ and m.gids == (gid(f.src), gid(f.dst)):
            if self.asked.setdefault((mine, m.local), m.qp) != m.qp:
                raise ValueError("a REQ for another connection with the same ID: not for this model")
        elif m.kind == REP and (theirs, m.remote) in self.asked:
            qp = self.asked[theirs, m.remote]
            if (theirs, m.remote) in self.connections:
                return {}, []
            self.connections[theirs, m.remote] = mine, m.local, qp, m.qp
            return {self.flow(theirs, m.qp): qp, self.flow(mine, qp): m.qp}, []
        elif m.kind == DREQ:
            for key, (replier, local, qp, other) in list(self.connections.items()):
                if (mine, m.local, m.remote, m.qp) in ((*key, local, other), (replier, local, key[1], qp)):
                    del self.connections[key]
                    return {}, [self.flow(key[0], other), self.flow(replier, qp)]
        elif m.kind == REJ:
            raise ValueError("a REJ: not for this model")
        return {}, []

    @staticmethod
    def flow(side, qp):
        src, dst, port, vlans = side
        return src, dst, qp, port, vlans


class Sight:
    """What was seen of one flow so far."""

    def __init__(self):
        self.packets, self.ports, self.first, self.high, self.answers, self.unreliable = 0, set(), None, None, [], False

    def see(self, f):
        """Takes a packet; reports whether it is a response."""
        self.packets += 1
        self.ports.add(f.sport)
        operation, self.unreliable = f.opcode & 31, f.opcode >> 5 == UC
        if 13 <= operation <= 18:
            self.answers.append(f.psn)
            return True
        last = f.psn
        if operation == 12:  # a READ takes as many PSNs as its response has packets, by the smallest path MTU
            length, = struct.unpack_from("!I", f.octets, f.bth_at + 24)
            last += (max(length, 1) - 1) // 256
        if self.first is None:
            self.first, self.high = f.psn, last % PSNS
        elif ahead(f.psn, self.first) < 0 and -ahead(f.psn, self.first) < UNSEEN:
            self.first = f.psn
        if ahead(last % PSNS, self.high) > 0:
            self.high = last % PSNS
        return False

    def sent(self, psn, slack=0):
        return self.first is not None and ahead(psn, self.first) >= -slack and ahead(psn, self.high) <= 0

    def answered_by(self, other):
        return any(self.sent(psn) for psn in other.answers)


def ahead(a, b):
    """How far PSN a is in front of b; negative if it is behind."""
    return (a - b + PSNS // 2) % PSNS - PSNS // 2


class Claim:
    """A pair of flows that a report says was confirmed by ports or PSNs, when each had so many packets."""

    def __init__(self, evidence, flows, took):
        self.evidence, self.flows, self.took = evidence, flows, took
        self.due = None   # packets of both when there was enough to tell
        self.known = False
        self.wrong = None

    def see(self, sights):
        """Called after each packet of either flow: is this the one that confirmed them?

        It is the first that has either flow at as many packets as it took; then the other has as many as it took, too.
        """
        a, b = (sights.get(k) for k in self.flows)
        if self.known or a is None or b is None:
            return False
        if self.due is None and self.why_not(sights, a, b) is None:
            self.due = a.packets + b.packets
        if a.packets < self.took[0] or b.packets < self.took[1]:
            return False
        self.known, self.wrong = True, self.why_not(sights, a, b)
        if (a.packets, b.packets) != self.took:
            self.wrong = "there is no moment at which they had %d and %d packets" % self.took
        if self.wrong is None and a.packets + b.packets > 4 * self.due + 8:
            self.wrong = "there was enough to tell after %d packets, and it took %d" % (self.due, a.packets + b.packets)
        return True

    def why_not(self, sights, a, b):
        """What the evidence lacks, None if nothing."""
        ka, kb = self.flows
        if sights.ruled_out(ka, kb):
            return "one acknowledges what the other has not sent"
        if not (a.answered_by(b) or b.answered_by(a) or a.unreliable):
            return "neither has answered the other"
        others = [k for k in sights.between(ka) if k not in self.flows and k not in sights.known
                  and not sights.ruled_out(k, kb if k[0] == ka[0] else ka)]
        agreeing = len(set(a.answers)) + len(set(b.answers))
        if self.evidence == "port":
            if a.ports != b.ports or len(a.ports) != 1:
                return "the ports are %s and %s" % (sorted(a.ports), sorted(b.ports))
            port = next(iter(a.ports))
            others = [k for k in others if port in sights[k].ports]
            if symmetric_port(ka[2], kb[2]) == port:
                others = [k for k in others if symmetric_port(k[2], (kb if k[0] == ka[0] else ka)[2]) == port]
                agreeing = ENOUGH
        if others:
            return "other flows may be meant: %s" % others
        return None if agreeing >= ENOUGH else "too few acknowledgements"


class Sights(collections.defaultdict):
    """Every flow's sight by its key (source, destination, QP, source QP, port, VLANs), for claims to be held against."""

    def __init__(self, claims):
        super().__init__(Sight)
        self.known, self.ruled = set(), set()
        self.claims = collections.defaultdict(list)
        for c in claims:
            for k in c.flows:
                self.claims[k].append(c)

    def see(self, key, f):
        """Takes a packet; returns the claims that have come true by it."""
        if self[key].see(f):
            self.ruled |= {frozenset((key, k)) for k in self.between(key) if k[0] == key[1] and not self[k].sent(f.psn, UNSEEN)}
        return [c for c in self.claims[key] if c.see(self)]

    def between(self, key):
        """The flows of both directions between two hosts."""
        return [k for k in self if {k[0], k[1]} == {key[0], key[1]} and k[5] == key[5]]

    def ruled_out(self, one, other):
        """One has answered what the other had not sent, when both were there."""
        return frozenset((one, other)) in self.ruled
