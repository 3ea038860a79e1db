"""A second gateway: what one must do with a capture, written from the drafts and from what the configuration promises.

Time is in nanoseconds. Frames of one instant are received up to a burst at a time, the fabric port's first, before anything leaves
at that instant; a line is booked in nanoseconds with 32 binary digits behind the point.
"""
import collections
import ipaddress
import itertools
from fractions import Fraction

import pairing
import wire

LINE_OVERHEAD = 24  # octets: preamble, FCS, gap
SENDERS, LOOKED = 4095, 64  # watched at most, and looked at in a step
EQUAL = Fraction(3, 4)  # of a fair share is as good as one: equal flows differ by a few packets
PER_ROUND = 16  # senders that a round may notify
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
        self.congestion = [Congestion(c["Response"]) for _ in self.classes]
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


class Meter:
    """Depth, growth (bytes a millisecond) and marking rate (millionths) of a class, the rates once an interval."""

    def __init__(self):
        self.began, self.depth, self.packets, self.marked = 0, 0, 0, 0
        self.growth = self.marking = 0

    def update(self, interval, now, depth, packets, marked):
        if self.began and now - self.began >= interval:
            self.growth = int((depth - self.depth) * 1e6 / max(now - self.began, 1))
            entered = packets - self.packets
            self.marking = (marked - self.marked) * 10**6 // entered if entered else 0
        elif self.began:
            return
        self.began, self.depth, self.packets, self.marked = max(now, 1), depth, packets, marked


class Sender:
    """What is known of a sender: its flow's arrival rate window by window, and what it was asked."""

    def __init__(self, out, i):
        self.out, self.i = out, i
        self.began = self.bytes = self.rate = self.before = self.depth = self.past = 0
        self.last, self.asked, self.slowed, self.deferred = None, False, False, None
        self.kind = self.frame = None  # of the last notification

    def observe(self, rtt, interval, now, octets, depth):
        window = max(rtt, interval)
        if not self.began:
            self.past = depth
        elif now - self.began < window:
            return
        else:
            if rtt:
                self.before, self.rate = self.rate, max(int((octets - self.bytes) * 1e6 / max(now - self.began, 1)), 1)
            self.past = self.depth
        self.began, self.bytes, self.depth = max(now, 1), octets, depth

    def slower(self):
        return self.before and self.rate < self.before - self.before // 8


class Congestion:
    """How one class responds (draft-tian 5.3 to 5.7)."""

    def __init__(self, c):
        self.c, self.meter, self.on = c, Meter(), set()
        self.entered = self.marked = self.round = self.sent = 0
        self.since = None  # below K_min
        self.again = 0  # no Resume before
        self.surveyed = self.depth = 0

    def update(self, now, depth):
        c, m = self.c, self.meter
        self.depth = depth
        m.update(c["Interval"], now, depth, self.entered, self.marked)
        quarter = (c["KMax"] - c["KMin"]) // 4
        for name, wanted, value, begins, ends in (
            ("depth", c["Depth"], depth, c["KMax"], c["KMax"] - quarter), ("marking", c["Marking"], m.marking, c["Marking"], c["Marking"] // 2),
            ("growth", c["Growth"], m.growth, c["Growth"], c["Growth"] // 2)):
            if wanted and (value > begins or name in self.on and value > ends):
                self.on.add(name)
            else:
                self.on.discard(name)

    def severity(self, depth):
        """0 to 42 at K_min, to 177 at K_max, to 255 at twice K_max; rounded."""
        low, high = self.c["KMin"], self.c["KMax"]
        if depth <= low:
            return 0 + self.part(42, depth, low)
        if depth <= high:
            return 42 + self.part(135, depth - low, high - low)
        return 177 + self.part(78, depth - high, high)

    @staticmethod
    def part(of, n, whole):
        if n >= whole:
            return of if n else 0
        return (n * of + whole // 2) // whole

    def decide(self, depth, last=None):
        """The rung of the ladder for the depth; if last is given a stricter one than that. (rung, action, parameter, level, metric)"""
        ladder, level = self.c["Ladder"], self.severity(depth)
        if self.on - {"depth"}:
            level = max(level, 43)
        n = max(k for k in range(len(ladder)) if k == 0 or ladder[k]["Level"] <= level)
        if last is not None:
            n = max(n, min(last[0] + 1, len(ladder) - 1))
            level = max(level, min(last[3] + 1, 255), ladder[n]["Level"])
        action, parameter = ladder[n]["Action"], 0
        if action == RATE_REDUCE:
            parameter = min(ladder[n]["Percent"], 100)
        elif action == PAUSE:
            parameter = min(max(int(max(depth - self.c["KMin"], 0) * 8e6 / self.c["Rate"]), 1), 65535)
        return n, action, parameter, level, self.metric(depth)

    def ease(self, depth):
        return None, RESUME, min(self.c["ResumePercent"], 100), self.severity(depth), 1 << 24 | min(depth // 1000, 0xffffff) if self.c["Disclose"] else 0

    def metric(self, depth):
        if not self.c["Disclose"]:
            return 0
        if "depth" in self.on or not self.on:
            return 1 << 24 | min(depth // 1000, 0xffffff)
        if "growth" in self.on:
            return 2 << 24 | min(max(self.meter.growth, 0) // 1000, 0xffffff)
        return 3 << 24 | self.meter.marking // 10000

    def next(self, sender, depth, now):
        """What the sender is asked now, or the reason to leave it alone."""
        if not sender.asked:
            return self.first(sender, depth, now)
        if sender.slower() and depth <= sender.past:
            return None, "slowing-down"
        if depth < sender.past - sender.past // 32:
            return None, "draining"
        return self.decide(depth, sender.last if depth > sender.past else None), None

    def first(self, sender, depth, now):
        """One that slows down unasked is left alone for a window, and then asked for more if the queue has grown."""
        waits = sender.deferred
        if waits is not None and now - waits[0] < self.c["RTT"]:
            return None, "already-slower"
        if waits is not None and depth > waits[1]:
            return self.decide(depth, self.decide(depth)), None
        if sender.slower() or waits is not None and depth < waits[1] - waits[1] // 32:
            sender.deferred = now, depth
            return None, "already-slower"
        sender.deferred = None
        return self.decide(depth), None


NOTIFY, PAUSE, RATE_REDUCE, RESUME = range(4)


class Flow:
    def __init__(self, source_qp, evidence):
        self.source_qp, self.evidence = source_qp, evidence
        self.seen, self.took, self.ended, self.ended_at = 0, int(source_qp is not None), "", None
        self.packets = self.bytes = self.marked = 0
        self.notified, self.notified_at, self.transport, self.sender = collections.Counter(), None, None, None
        self.where = self.place = None  # of its sender among those that are watched


class Services:
    """A QP has one transport service: which ones are known as an end of a connection, so that no DETH is believed that names them."""

    def __init__(self, named):
        self.named, self.connected, self.sent, self.received = set(named), set(), set(), set()

    def see(self, f):
        """Takes the first packet of a flow. UD packets in both directions, before, outweigh those of a connection in one."""
        to, by = (f.dst, f.qp, f.vlans), (f.src, f.source_qp, f.vlans)
        if f.transport == "UD":
            self.received.add(to)
            if not self.connects(*by):
                self.sent.add(by)
        elif to not in self.sent & self.received:
            self.connected.add(to)
            self.sent.discard(to)

    def connects(self, host, qp, vlans):
        return (host, qp) in self.named or (host, qp, vlans) in self.connected


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
        self.enabled = {"fast-cnp"} if n["FastCNP"]["Enabled"] else set()
        if n["LongHaul"]["Enabled"]:
            self.enabled |= {"long-haul-cnp", "long-haul-cnp-icmpv6"}
        self.endpoints = [(ipaddress.ip_network(e["prefix"]), e["accepts"]) for e in facts["endpoints"]]
        self.domain = c["Domain"] and {k: [ipaddress.ip_network(p) for p in v] for k, v in c["Domain"].items() if k != "Observe"}
        self.to_destination, self.to_port = Rate(n["Limits"]["PerDestination"]), Rate(n["Limits"]["PerPort"])
        self.proxies = [(ipaddress.ip_network(s["Prefix"]), address(s["Proxy"])) for s in c["Proxy"]["Senders"] or []] if c["Proxy"]["Enabled"] else []
        self.to_proxy = Rate(c["Proxy"]["PerProxy"])
        self.pairs = {}
        for p in c["QPMap"] or []:
            self.pairs[p["Source"], p["Destination"], p["DestinationQP"]] = p["SourceQP"]
            self.pairs[p["Destination"], p["Source"], p["SourceQP"]] = p["DestinationQP"]
        self.services = Services((ipaddress.ip_address(src), qp) for (src, _, _), qp in self.pairs.items())
        self.cm, self.said = pairing.CM({self.fabric: self.wan, self.wan: self.fabric}), {}
        self.claims = claims(self)
        self.sights, self.cnps = pairing.Sights(self.claims), set()
        self.flows, self.counters = {}, collections.Counter()
        self.forwarded, self.emitted, self.dropped = [], [], []
        self.now = self.looked = 0
        self.places = itertools.count()

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
            due = list(self.due())
            if not due or until is not None and min(due) >= until:
                break
            self.now = min(due)
            self.send()
        if until is not None:
            if until - self.now > LATE:
                raise ValueError("a gap that lets flows age")
            self.now = until

    def due(self):
        """When there is something to do, without a frame that comes."""
        for q in self.queues.values():
            if not q.empty():
                yield max(q.free, self.now)
        for out, i in {(r.sender.out, r.sender.i) for r in self.slowed()}:
            k = self.queues[out].congestion[i]
            if k.since is not None:
                yield max(k.since + k.c["RTT"], k.again, self.now)

    def slowed(self):
        return [r for r in self.flows.values() if r.sender is not None and r.sender.slowed]

    def resume(self):
        """Senders that were asked to slow down are sent a Resume when their queue has been below K_min for RTT_est."""
        for port, q in self.queues.items():
            for i, k in enumerate(q.congestion):
                waiting = [r for r in self.slowed() if (r.sender.out, r.sender.i) == (port, i)]
                if not waiting:
                    k.since, k.again = None, 0
                    continue
                if q.depth[i] >= k.c["KMin"]:
                    k.since = None
                    continue
                if k.since is None:
                    k.since = self.now
                if self.now - k.since < k.c["RTT"] or self.now < k.again:
                    continue
                k.meter.update(k.c["Interval"], self.now, q.depth[i], k.entered, k.marked)
                while waiting and self.now >= k.again:
                    for r in self.some(waiting):
                        self.resume_sender(r, q, k, i)
                        waiting.remove(r)

    def some(self, waiting):
        """The search among all places is in parts, and goes on where it ended: limits let the first ones through, so the order matters."""
        n, self.looked = self.looked, (self.looked + LOOKED) % SENDERS
        return sorted((r for r in waiting if (r.place - n) % SENDERS < LOOKED), key=lambda r: (r.place - n) % SENDERS)

    def resume_sender(self, r, q, k, i):
        """One that has to wait is tried again after a millisecond, and so are those that the search has not come to."""
        s = r.sender
        if k.c["Resumes"] and s.kind in ("long-haul-cnp", "long-haul-cnp-icmpv6", "ppfc"):
            f, inward = s.frame
            reason = "source-qp-unknown" if r.ended else None  # RDMA-CM has released the connection
            if reason is None:
                if r.notified_at is not None and self.now - r.notified_at < q.c["PerFlow"]:
                    k.again = self.now + 10**6
                    return
                reason = self.limited(s.kind, f, inward)
                if reason is not None:
                    k.again = self.now + 10**6
            if reason is None:
                self.notify(r, s.kind, f, inward, k.ease(q.depth[i]))
                r.notified_at = self.now
            else:
                self.counters["notifications_suppressed_total", reason] += 1
                if not r.ended:
                    return
        r.sender = None

    def send(self):
        moved = True
        self.resume()
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
            self.resume()

    def side(self, f):
        inside = f.sender is not None and any(f.sender in p for p in self.prefixes)
        return self.fabric if inside else self.wan

    def receive(self, frames):
        for port in sorted((self.fabric, self.wan)):
            burst = [f for f in frames if self.side(f) == port]
            flows = [self.learn(f, port) for f in burst]
            for f, flow in zip(burst, flows):
                self.counters["received_packets_total", None] += 1
                self.counters["received_bytes_total", None] += f.length
                if flow is not None:
                    r = self.flows[flow]
                    r.packets, r.bytes, r.transport = r.packets + 1, r.bytes + f.length, f.transport
            going = [(f, flow) for f, flow in zip(burst, flows) if self.passes(f, port)]
            out = self.wan if port == self.fabric else self.fabric
            for i in dict.fromkeys(self.queues[out].class_of(f.dscp) for f, _ in going):
                self.enqueue([(f, flow) for f, flow in going if self.queues[out].class_of(f.dscp) == i], port, out, i)
        self.send()

    def passes(self, f, port):
        if f.mac_control:
            self.counters["consumed_packets_total", "mac-control"] += 1
            return False
        if self.ends_at_border(f, port):
            return False
        if port == self.wan:
            self.notified_elsewhere(f)
        if f.roce and f.ecn == 3:
            self.counters["roce_ce_received_packets_total", None] += 1
        return True

    def learn(self, f, port):
        if not f.roce:
            return None
        if f.opcode == wire.CNP:
            self.learn_cnp(f)
            return None
        key = (f.src, f.dst, f.qp, f.source_qp, port, f.vlans)
        if key not in self.flows:
            self.flows[key] = self.begin(f)
            self.services.see(f)
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
            self.counters["qp_confirmed_total", r.evidence] += r.evidence != "deth" or not self.services.connects(f.src, f.source_qp, f.vlans)
        return r

    def source_qp(self, key):
        """That of a flow, None while it is unknown: a DETH says nothing of a QP that is one end of a connection."""
        src, _, _, source_qp, _, vlans = key
        r = self.flows[key]
        return None if r.evidence == "deth" and self.services.connects(src, source_qp, vlans) else r.source_qp

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

    def enqueue(self, frames, port, out, i):
        """Frames of one class: what fits enters the queue, then the queue responds."""
        q, k = self.queues[out], self.queues[out].congestion[i]
        entered, depth = [], q.depth[i]
        for f, flow in frames:
            if q.depth[i] + f.length > q.c["QueueCapacity"] or len(q.classes[i]) >= q.c["QueueFrames"]:
                reason = "queue-full-bytes" if q.depth[i] + f.length > q.c["QueueCapacity"] else "queue-full-frames"
                self.counters["dropped_packets_total", reason] += 1
                self.dropped.append(f)
                continue
            q.depth[i] += f.length
            q.octets[i][flow] += f.length
            entry = [None, f.octets, f.length, flow]
            q.classes[i].append(entry)
            entered.append((f, flow, entry))
        k.entered += len(entered)
        k.update(self.now, q.depth[i])
        if q.depth[i] <= k.c["KMin"] and not k.on:
            return
        least = self.begin_round(q, k, i) if k.on and out == self.wan else None
        if least is None and out == self.wan and self.now - k.surveyed >= k.c["Interval"]:
            self.survey(k, (out, i), [(f, flow) for f, flow, _ in entered], q.depth[i])
        after = q.depth[i]
        for f, flow, entry in entered:
            depth += f.length
            sent = None
            if least is not None and f.roce and f.data and flow is not None:
                sent = self.notify_largest(f, port, out, i, flow, after, least)
            if sent != "fast-cnp" and k.c["Marks"] and depth > k.c["KMin"] and f.ecn in (1, 2):
                entry[1] = wire.mark_ce(f)
                k.marked += 1
                self.counters["queue_ecn_marked_packets_total", None] += 1
                if flow is not None:
                    self.flows[flow].marked += 1

    def notified_elsewhere(self, f):
        """Another gateway's notification to a sender that is watched counts as one, unless it is a Resume."""
        kind = self.notification(f)
        if kind not in ("fast-cnp", "extended-cnp", "long-haul-cnp-icmpv6"):
            return
        at = f.l4 + 20 if f.roce else f.l4 + 4
        if kind != "fast-cnp" and (len(f.octets) < at + 12 or f.octets[at + 1] >> 6 == RESUME):
            return
        qp = f.qp if f.roce else int.from_bytes(f.octets[at + 4:at + 8], "big")
        for key, r in self.flows.items():
            if r.sender is None or key[0] != f.dst or qp != (key[2] if kind == "fast-cnp" else None if r.ended else self.source_qp(key)):
                continue
            k = self.queues[r.sender.out].congestion[r.sender.i]
            r.notified_at, r.sender.asked, r.sender.last = self.now, True, k.decide(k.depth)
            r.sender.depth = r.sender.past = k.depth

    def survey(self, k, where, entered, depth):
        """Four senders that could be notified are looked at once an interval while nothing asks for notifications yet."""
        k.surveyed = self.now
        for flow in [flow for f, flow in entered if f.roce and f.data and flow is not None and self.refusal(f, flow) is None][:4]:
            self.watch(self.flows[flow], k, where, depth)

    def watch(self, r, k, where, depth):
        if r.sender is None or (r.sender.out, r.sender.i) != where:
            r.sender = Sender(*where)
        if r.where != where:
            r.where, r.place = where, next(self.places)
        r.sender.observe(k.c["RTT"], k.c["Interval"], self.now, r.bytes, depth)

    def begin_round(self, q, k, i):
        """The least share of those that count: the smallest of the largest ones, as many as a round may notify, and a fair share."""
        if self.now - k.round >= k.c["Interval"]:
            k.round, k.sent = self.now, 0
        shares = sorted((n for flow, n in q.octets[i].items() if flow is not None and n), reverse=True)
        if not shares:
            return 1
        effective = Fraction(sum(shares) ** 2, sum(n * n for n in shares))  # number of flows: it counts tiny ones hardly
        return max(shares[:PER_ROUND][-1], EQUAL * sum(shares) / effective)

    def notify_largest(self, f, port, out, i, flow, depth, least):
        """The kind of notification sent; None if none was, with the reason counted."""
        q, k, r = self.queues[out], self.queues[out].congestion[i], self.flows[flow]
        octets = q.octets[i]
        if octets[flow] < least:
            return None
        kind, reason, decision = self.decide(f, q, k, flow, (out, i), depth, 2 * octets[None] > q.depth[i])
        if kind is None and reason is None:
            return None
        if reason is None:
            reason = self.limited(kind, f, port)
        if reason is not None:
            self.counters["notifications_suppressed_total", reason] += 1
            return None
        self.notify(r, kind, f, port, decision)
        k.sent += 1
        self.counters["notifications_triggered_total", "depth"] += 1
        r.notified_at = self.now
        s = r.sender
        s.last, s.asked, s.depth, s.past, s.deferred = decision, True, depth, depth, None
        s.slowed = s.slowed or decision[1] != NOTIFY
        if s.slowed:
            k.since, k.again = None, 0
        s.kind, s.frame = kind, (f, port)
        return kind

    def destination(self, kind, f):
        """Who is notified of a packet, and the limit for it: all senders behind a proxy share its limit."""
        if kind == "proxy-notification":
            return self.proxy_of(f.src), self.to_proxy
        return f.src, self.to_destination

    def limited(self, kind, f, port):
        to, limit = self.destination(kind, f)
        if not limit.allows(to, self.now):
            return "destination-limit"
        return None if self.to_port.allows(port, self.now) else "port-limit"

    def notify(self, r, kind, f, port, decision):
        to, limit = self.destination(kind, f)
        limit.count(to, self.now)
        self.to_port.count(port, self.now)
        _, action, parameter, level, metric = decision
        if kind == "proxy-notification":
            octets = wire.proxy_notification(f, self.build, to, level)
        else:
            octets = wire.notification(kind, f, self.build, r.source_qp, level, action, parameter, metric)
        if kind == "fast-cnp" and wire.trace_too_long(f):
            self.counters["notifications_fast_cnp_trace_too_long_total", None] += 1
        self.queues[port].notes.append((kind, octets, len(octets)))
        r.notified[kind] += 1

    def decide(self, f, q, k, flow, where, depth, other_is_larger):
        """Who is not to be notified at all is not watched, and has no interval that could have passed. A QP may be known soon."""
        if other_is_larger:
            return None, "largest-not-roce", None
        refusal, r = self.refusal(f, flow), self.flows[flow]
        if refusal not in (None, "source-qp-unknown"):
            return None, refusal, None
        self.watch(r, k, where, depth)
        if r.notified_at is not None and self.now - r.notified_at < q.c["PerFlow"]:
            return None, "flow-limit", None
        decision, reason = k.next(r.sender, depth, self.now)
        if reason is not None:
            return None, reason, None
        if k.sent >= PER_ROUND:
            return None, None, None
        return self.recipient(f, flow)[0], refusal, decision

    def refusal(self, f, flow):
        """Why nobody can be notified of a packet, whatever its sender does; None if somebody can."""
        return self.recipient(f, flow)[1]

    def recipient(self, f, flow):
        """The format for a packet's sender, or for its proxy; or why there is none."""
        source_qp = None if self.flows[flow].ended else self.source_qp(flow)
        known = source_qp is not None
        if f.qp < 2 or known and source_qp < 2:
            return None, "management-qp"
        if f.dst.is_multicast or f.octets[0] & 1:
            return None, "not-unicast"
        return self.choose(f.src, known)

    def choose(self, src, known):
        """The first format in the endpoint's order that is enabled and possible, or the reason of the one nearest to that."""
        if src.is_multicast or src.is_unspecified or src.is_loopback:
            return None, "not-unicast"
        proxy = self.proxy_of(src)
        if proxy is not None:
            return ("proxy-notification", None) if self.build["ipv%d" % proxy.version] else (None, "no-gateway-address")
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

    def proxy_of(self, src):
        """The proxy of a sender: that of the longest prefix; None without one, and if it is the gateway itself."""
        covering = [(p.prefixlen, proxy) for p, proxy in self.proxies if src in p]
        proxy = max(covering, key=lambda c: c[0])[1] if covering else None
        return None if proxy in (self.build["ipv4"], self.build["ipv6"]) else proxy


def address(text):
    return ipaddress.ip_address(text) if text else None
