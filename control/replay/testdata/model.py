"""A second gateway: what one must do with a capture, written from the drafts and from what the configuration promises.

Time is in nanoseconds. Frames of one instant are received up to a burst at a time, the fabric port's first, before anything leaves
at that instant; a line is booked in nanoseconds with 32 binary digits behind the point.
"""
import collections
import ipaddress

import pairing
import wire

LINE_OVERHEAD = 24  # octets: preamble, FCS, gap
LATE = 60 * 10**9   # beyond this, aging would matter; not for this model


class Rate:
    """So many a second, and a hundredth of that at once (generic cell rate algorithm), in sixteenths of a nanosecond."""

    def __init__(self, per_second):
        self.gap = -(-16 * 10**9 // per_second) if per_second else 0
        self.tolerance = (-(-per_second // 100) - 1) * self.gap
        self.expected = collections.defaultdict(int)

    def allows(self, key, now):
        return not self.gap or max(0, self.expected[key] - 16 * now) <= self.tolerance

    def count(self, key, now):
        if self.gap:
            self.expected[key] = max(self.expected[key], 16 * now) + self.gap


class Queue:
    """What is in front of one port."""

    def __init__(self, c):
        self.c, self.free, self.fraction = c, 0, 0
        self.notes = collections.deque()
        self.classes = [collections.deque() for _ in c["Classes"]]
        self.depth = [0] * len(self.classes)
        self.octets = [collections.Counter() for _ in self.classes]  # by flow; None for frames of no flow
        self.per_octet = (8 * 10**9 << 32) // c["Rate"]

    def class_of(self, dscp):
        return next(i for i, k in enumerate(self.c["Classes"]) if k["DSCP"] >> dscp & 1)

    def empty(self):
        return not self.notes and not any(self.classes)

    def pop(self, now):
        """Takes what goes next, and books the line."""
        if self.notes:
            kind, octets, length = self.notes.popleft()
        else:
            i = next(i for i, k in enumerate(self.classes) if k)
            kind, octets, length, flow = self.classes[i].popleft()
            self.depth[i] -= length
            self.octets[i][flow] -= length
        cost = (length + LINE_OVERHEAD) * self.per_octet + self.fraction
        self.free, self.fraction = max(self.free, now) + (cost >> 32), cost & 0xffffffff
        return kind, octets, length


class Flow:
    def __init__(self, source_qp, evidence):
        self.source_qp, self.evidence = source_qp, evidence
        self.seen, self.took, self.ended, self.ended_at = 0, int(source_qp is not None), "", None
        self.packets = self.bytes = self.marked = 0
        self.notified, self.told, self.transport = collections.Counter(), None, None


class Gateway:
    """claims(gateway) are the pairs of flows of which a report says that they were learned from ports or PSNs."""

    def __init__(self, facts, claims=lambda _: []):
        c = facts["config"]
        self.burst = c["DPDK"]["Burst"]
        self.fabric = next(i for i, p in enumerate(c["Ports"]) if p["Role"] == 0)
        self.wan = c["Ports"][self.fabric]["Peer"]
        self.queues = {i: Queue(c["Ports"][i]) for i in sorted((self.fabric, self.wan))}
        self.prefixes = [ipaddress.ip_network(p) for p in facts["fabric"]]
        n = c["Notifications"]
        self.build = {
            "ipv4": address(c["Gateway"]["IPv4"]), "ipv6": address(c["Gateway"]["IPv6"]), "dscp": n["DSCP"],
            "option": n["FastCNP"]["OptionType"], "trace option": n["FastCNP"]["TraceOptionType"], "proxy": c["Proxy"]["Port"], "icmpv6": n["LongHaul"]["ICMPv6Type"],
            "extensions": n["FastCNP"]["ICRCExtensionHeaders"],
        }
        self.percent, self.disclose = n["LongHaul"]["ReducePercent"], n["LongHaul"]["DiscloseMetrics"]
        self.enabled = {"fast-cnp"} if n["FastCNP"]["Enabled"] else set()
        if n["LongHaul"]["Enabled"]:
            self.enabled |= {"long-haul-cnp", "long-haul-cnp-icmpv6"}
        self.endpoints = [(ipaddress.ip_network(e["prefix"]), e["accepts"]) for e in facts["endpoints"]]
        self.domain = c["Domain"] and {k: [ipaddress.ip_network(p) for p in v] for k, v in c["Domain"].items()}
        self.to_destination, self.to_port = Rate(n["Limits"]["PerDestination"]), Rate(n["Limits"]["PerPort"])
        self.pairs = {}
        for p in c["QPMap"] or []:
            self.pairs[p["Source"], p["Destination"], p["DestinationQP"]] = p["SourceQP"]
            self.pairs[p["Destination"], p["Source"], p["SourceQP"]] = p["DestinationQP"]
        self.cm, self.said = pairing.CM({self.fabric: self.wan, self.wan: self.fabric}), {}
        self.claims = claims(self)
        self.sights, self.cnps = pairing.Sights(self.claims), set()
        self.flows, self.counters = {}, collections.Counter()
        self.forwarded, self.emitted, self.dropped = [], [], []
        self.now = 0

    def run(self, frames):
        start = frames[0][0] if frames else 0
        self.now, waiting = start, []
        for at, octets, length in frames:
            at = max(at, self.now)
            if at > self.now or len(waiting) == self.burst:
                self.receive(waiting)
                waiting = []
                self.advance(at)
            waiting.append(wire.Frame(octets, length))
        self.receive(waiting)
        self.advance(None)

    def advance(self, until):
        """Departure by departure."""
        while True:
            due = [max(q.free, self.now) for q in self.queues.values() if not q.empty()]
            if not due or until is not None and min(due) >= until:
                break
            self.now = min(due)
            self.send()
        if until is not None:
            if until - self.now > LATE:
                raise ValueError("a gap that lets flows age")
            self.now = until

    def send(self):
        moved = True
        while moved:
            moved = False
            for i, q in self.queues.items():
                if not q.empty() and q.free <= self.now:
                    kind, octets, length = q.pop(self.now)
                    moved = True
                    if kind is None:
                        self.counters["forwarded_packets_total", None] += 1
                        self.counters["forwarded_bytes_total", None] += length
                        self.forwarded.append((self.now, octets, length, i))
                    else:
                        self.counters["notifications_sent_total", kind] += 1
                        self.emitted.append((self.now, octets, length, i))

    def side(self, f):
        inside = f.sender is not None and any(f.sender in p for p in self.prefixes)
        return self.fabric if inside else self.wan

    def receive(self, frames):
        for port in sorted((self.fabric, self.wan)):
            burst = [f for f in frames if self.side(f) == port]
            for f, flow in zip(burst, [self.learn(f, port) for f in burst]):
                self.counters["received_packets_total", None] += 1
                self.counters["received_bytes_total", None] += f.length
                self.forward(f, port, flow)
        self.send()

    def forward(self, f, port, flow):
        if f.mac_control:
            self.counters["consumed_packets_total", "mac-control"] += 1
            return
        if self.ends_at_border(f, port):
            return
        if f.roce and f.ecn == 3:
            self.counters["roce_ce_received_packets_total", None] += 1
        if flow is not None:
            r = self.flows[flow]
            r.packets, r.bytes, r.transport = r.packets + 1, r.bytes + f.length, f.transport
        self.enqueue(f, port, flow)

    def learn(self, f, port):
        if not f.roce:
            return None
        if f.opcode == wire.CNP:
            self.learn_cnp(f)
            return None
        key = (f.src, f.dst, f.qp, f.source_qp, port, f.vlans)
        if key not in self.flows:
            self.flows[key] = self.begin(f)
            if self.flows[key].evidence is not None:
                self.sights.known.add(key)
        if f.qp == 1:
            self.learn_cm(f, port)
        elif f.transport != "UD":
            self.learn_connection(f, key)
        return key

    def begin(self, f):
        known = self.pairs.get((str(f.src), str(f.dst), f.qp))
        r = Flow(f.source_qp, "deth") if f.source_qp else Flow(known, "static" if known is not None else None)
        if r.evidence is not None:
            self.counters["qp_evidence_total", r.evidence] += 1
            self.counters["qp_confirmed_total", r.evidence] += 1
        return r

    def learn_cnp(self, f):
        """A receiver's CNP names its sender's QP; one of a gateway says nothing of the receiver."""
        if self.notification(f) == "standard-cnp":
            self.counters["qp_evidence_total", "cnp"] += 1
            self.cnps.add((f.dst, f.src))

    def learn_cm(self, f, port):
        before = self.cm.messages
        known, ended = self.cm.hear(f, port)
        self.counters["qp_evidence_total", "cm"] += self.cm.messages - before
        self.said.update(known)
        for src, dst, qp, side, vlans in known:
            key = src, dst, qp, 0, side, vlans
            if key in self.flows:
                self.confirm(key, known[src, dst, qp, side, vlans], "cm", self.flows[key].seen)
        for src, dst, qp, side, vlans in ended:
            self.said.pop((src, dst, qp, side, vlans))
            r = self.flows.get((src, dst, qp, 0, side, vlans))
            if r is not None and r.evidence != "static":
                r.ended, r.ended_at = "dreq", self.now

    def learn_connection(self, f, key):
        r = self.flows[key]
        if r.ended:
            if self.now - r.ended_at > pairing.LINGER:
                raise ValueError("a packet long after its connection was released: not for this model")
            return
        r.seen += 1
        for c in self.sights.see(key, f):
            for (k, mate), took in zip((c.flows, c.flows[::-1]), c.took):
                self.confirm(k, mate[2], c.evidence, took)
        said = self.said.get(key[:3] + key[4:])
        if said is not None:
            self.confirm(key, said, "cm", r.seen)

    def confirm(self, key, qp, evidence, took):
        r = self.flows[key]
        self.sights.known.add(key)
        if r.evidence not in (None, evidence):
            if evidence != "cm" or r.evidence == "static":
                return
            raise ValueError("better evidence for what was learned before: not for this model")
        if r.evidence is None:
            r.source_qp, r.evidence, r.took = qp, evidence, took
            self.counters["qp_confirmed_total", evidence] += 1

    def ends_at_border(self, f, port):
        kind = self.notification(f)
        if kind is None:
            return False
        self.counters["notifications_received_total", kind] += 1
        if self.domain is None or kind == "standard-cnp":
            return False
        inward = port == self.wan
        address, prefixes = (f.src, "NotificationSources") if inward else (f.dst, "Members")
        if any(address in p for p in self.domain[prefixes]):
            return False
        self.counters["dropped_packets_total", "border-in" if inward else "border-out"] += 1
        return True

    def notification(self, f):
        if f.roce:
            if f.opcode != wire.CNP:
                return None
            if f.family == 6 and any(kind in (self.build["option"], self.build["trace option"]) for kind, _ in f.options):
                return "fast-cnp"
            return "extended-cnp" if f.flags & 0x20 else "standard-cnp"
        if f.family == 6 and f.proto == 58 and f.octets[f.l4] == self.build["icmpv6"]:
            return "long-haul-cnp-icmpv6"
        return "proxy-notification" if f.proto == 17 and f.dport == self.build["proxy"] else None

    def enqueue(self, f, port, flow):
        out = self.wan if port == self.fabric else self.fabric
        q = self.queues[out]
        i = q.class_of(f.dscp)
        depth = q.depth[i] + f.length
        if depth > q.c["QueueCapacity"] or len(q.classes[i]) >= q.c["QueueFrames"]:
            reason = "queue-full-bytes" if depth > q.c["QueueCapacity"] else "queue-full-frames"
            self.counters["dropped_packets_total", reason] += 1
            self.dropped.append(f)
            return
        q.depth[i] = depth
        if any(flow is not None and o[flow] for o in q.octets[:i] + q.octets[i + 1:]):
            share = None  # a flow has its share in one class at a time
        else:
            share = flow
        q.octets[i][share] += f.length
        octets = f.octets
        if depth > q.c["KMin"]:
            told = None
            if depth > q.c["KMax"] and out == self.wan and f.roce and f.data:
                told = self.tell(f, port, out, i, flow, depth) if share is not None else None
            if told != "fast-cnp" and f.ecn in (1, 2):
                octets = wire.mark_ce(f)
                self.counters["queue_ecn_marked_packets_total", None] += 1
                if flow is not None:
                    self.flows[flow].marked += 1
        q.classes[i].append((None, octets, f.length, share))

    def tell(self, f, port, out, i, flow, depth):
        """The kind of notification sent; None if none was, with the reason counted."""
        q, r = self.queues[out], self.flows[flow]
        octets = q.octets[i]
        largest = max((n for k, n in octets.items() if k is not None), default=0)
        if octets[flow] < largest:
            return None
        kind, reason = self.decide(f, q, r, octets[flow] < octets[None])
        if reason is None and not self.to_destination.allows(f.src, self.now):
            reason = "destination-limit"
        if reason is None and not self.to_port.allows(port, self.now):
            reason = "port-limit"
        if reason is not None:
            self.counters["notifications_suppressed_total", reason] += 1
            return None
        self.to_destination.count(f.src, self.now)
        self.to_port.count(port, self.now)
        capacity = q.c["QueueCapacity"]
        level = 255 if depth >= capacity else depth * 255 // capacity
        metric = 1 << 24 | min(depth // 1000, 0xffffff) if self.disclose else 0
        octets = wire.notification(kind, f, self.build, r.source_qp, level, self.percent, metric)
        if kind == "fast-cnp" and wire.trace_too_long(f):
            self.counters["notifications_fast_cnp_trace_too_long_total", None] += 1
        self.queues[port].notes.append((kind, octets, len(octets)))
        r.told = self.now
        r.notified[kind] += 1
        return kind

    def decide(self, f, q, r, other_is_larger):
        if other_is_larger:
            return None, "largest-not-roce"
        if f.qp < 2:
            return None, "management-qp"
        if r.told is not None and self.now - r.told < q.c["PerFlow"]:
            return None, "flow-limit"
        return self.choose(f.src, r.source_qp is not None and not r.ended)

    def choose(self, src, known):
        """The first format in the endpoint's order that is enabled and possible, or the reason of the one nearest to that."""
        if src.is_multicast or src.is_unspecified or src.is_loopback:
            return None, "not-unicast"
        covering = [(p.prefixlen, accepts) for p, accepts in self.endpoints if src in p]
        if not covering:
            return None, "no-endpoint"
        order = ["nothing-accepted", "not-enabled", "wrong-family", "no-gateway-address", "source-qp-unknown"]
        nearest = 0
        for kind in max(covering)[1]:
            if kind not in self.enabled:
                nearest = max(nearest, 1)
            elif src.version == 4 and kind != "long-haul-cnp":
                nearest = max(nearest, 2)
            elif self.build["ipv%d" % src.version] is None:
                nearest = max(nearest, 3)
            elif kind != "fast-cnp" and not known:
                nearest = max(nearest, 4)
            else:
                return kind, None
        return None, order[nearest]


def address(text):
    return ipaddress.ip_address(text) if text else None
