package pairing

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/effort"
	"github.com/cnpgate/cnpgate/internal/testkit/mutate"
)

// mutant is one bound or condition of a rule, weakened.
type mutant struct{ file, from, to string }

var mutants = []mutant{
	// the evidence of a rule, and how much is enough
	{"judge.go", "const sureBits = 20", "const sureBits = 19"},
	{"judge.go", "evidence + 2*(bits.Len", "evidence + 3*(bits.Len"},
	{"judge.go", "- bits.Len(uint(hidden-1))", "- 0*hidden"},
	{"judge.go", "(max(one-matched, 0) + 1) * ", "1 * "},
	{"judge.go", " * (max(other-matched, 0) + 1)", " * 1"},
	{"judge.go", "2*int(max(a.Contradictions, b.Contradictions))", "int(max(a.Contradictions, b.Contradictions))"},
	{"judge.go", "int(min(max(a.Retries, b.Retries), maxRetries))", "0"},
	{"judge.go", ">= 1<<contradictions", ">= 1"},
	{"pairing.go", "const maxContradictions = 5", "const maxContradictions = 4"},
	{"learn.go", "maxRetries = 8 ", "maxRetries = 7 "},
	{"learn.go", "maxWait    = 12", "maxWait    = 11"},
	// the UDP source port
	{"portrule.go", "portBits   = 14", "portBits   = 15"},
	{"portrule.go", "fewPorts   = 12", "fewPorts   = 11"},
	{"portrule.go", "smallGroup = 16", "smallGroup = 15"},
	{"portrule.go", "manyFit    = 16", "manyFit    = 15"},
	{"portrule.go", "need = 2", "need = 1"},
	{"portrule.go", "return pair.alone", "return true"},
	{"portrule.go", "if !pair.few {", "if false {"},
	{"portrule.go", "!f.Identity().Unreliable() && !responded(f, peer) && !responded(peer, f)", "false"},
	{"portrule.go", "&& 2*one.formula > one.equal", ""},
	{"portrule.go", "&& 2*other.formula > other.equal", ""},
	{"portrule.go", "if 2*shared > flows {", "if false {"},
	{"portrule.go", "f.Sent().Valid() && !responded(f, peer) ||", ""},
	{"portrule.go", "|| peer.Sent().Valid() && !responded(peer, f)", ""},
	{"portrule.go", "if p.back.n != f.Number() || p.back.formula != p.match.formula {", "if p.back.n < 0 {"},
	{"portrule.go", "if !id.Steady() {", "if false {"},
	{"portrule.go", "case fits == 0 && m.left == 1:", "case m.left == 1:"},
	{"portrule.go", "return a.Steady() && b.Steady() && ", "return "},
	{"portrule.go", "if n++; !twice.add", "if !twice.add"},
	{"portrule.go", "			n++ // the first", "			// the first"},
	{"portrule.go", "	clear(scratch[:])\n", ""},
	{"portrule.go", "	slot.SetPortMark(own)\n", "	slot.SetPortMark(slot.PortMark() | own)\n"},
	// PSNs
	{"psnrule.go", "maxExact    = 40", "maxExact    = 41"},
	{"psnrule.go", "farApart    = 1 << 16", "farApart    = 1 << 15"},
	{"psnrule.go", "minAgreeing = 4", "minAgreeing = 3"},
	{"psnrule.go", "evidence := 24 - ", "evidence := 25 - "},
	{"psnrule.go", "bits.Len(firstSlack)", "bits.Len(0)"},
	{"psnrule.go", "n > 1 && 4*far < 3*(n-1) ||", "far < 0 ||"},
	{"psnrule.go", "|| n == 1 && near0(requester.Sent().First())", ""},
	{"psnrule.go", " && columnIs(all, &peer, f.Number())", ""},
	{"psnrule.go", " && bothWays(f, &peer)", ""},
	{"psnrule.go", "return ok && a.Usable()", "return ok || a.Usable()"},
	{"store/words.go", "FirstSlack = 63", "FirstSlack = 64"},
	{"track.go", "maxSpan    = 1 << 20", "maxSpan    = 1 << 21"},
	{"track.go", "maxGap     = 64", "maxGap     = 65"},
	// RDMA-CM
	{"cm/records.go", "const claimDelay = 1", "const claimDelay = 2"},
	{"judge.go", "<= firstSlack\n}", "<= firstSlack+1\n}"},
	{"judge.go", "a.Sent().Valid() && !begun(a) ||", ""},
	{"judge.go", "|| b.Sent().Valid() && !begun(b)", ""},
	{"judge.go", "return respondedAsClaimed(a, b) || respondedAsClaimed(b, a)", "return true"},
	{"judge.go", "return !near0(a.Claim().PSN()) || ownPort(a, b)", "return ownPort(a, b) || true"},
	{"judge.go", "(near0(a.Claim().PSN()) || ", "("},
	{"judge.go", " || near0(b.Claim().PSN())", ""},
	{"judge.go", " && !ownPort(a, b) {", " && false {"},
	{"judge.go", " && b.Elimination().Plausible >= minAgreeing", ""},
	{"cm.go", "(m.LocalGID != k.Src || m.RemoteGID != k.Dst)", "false"},
	{"cm/records.go", "if c.have == 3 || c.have>>m.Side&1 != 0 {", "if false {"},
	{"cm/records.go", "at != nil && at.Time == made", "at != nil"},
	{"cm/records.go", " && c.Owner == owners[side]", ""},
	{"cm/records.go", "r.aging > 0 && now-at.Time > r.aging", "false"},
	{"cm/records.go", " ||\n			r.Claim(f.Group, 1-f.Side, at.SourceQP, f.DestQP) == nil {", " {"},
	{"cm/records.go", "c.have, c.port = 0, 0", "c.have = 0"},
	{"cm/records.go", " || c.comm[1-m.Side] != m.Remote", ""},
	{"cm/records.go", " || !rej && c.qpn[1-m.Side] != m.QPN", ""},
	{"cm/records.go", "h>>1%uint64(len(r.claims))", "h%uint64(len(r.claims))"},
	{"cm.go", "c != nil && c.Time != made {", "c != nil && c.Time != made && false {"},
	{"cm.go", "if !p.closeFlows(l, m, c) {", "if p.closeFlows(l, m, c); false {"},
	{"cm.go", "t != 0 && t < m.Time", "t != 0 && false"},
	{"cm/queue.go", "excess >= len(q.of)-WaitingShares*OwnWaiting-q.common", "false"},
	{"cm.go", "readsAtOnce = 4", "readsAtOnce = 5"},
	{"cm.go", "m == nil || !l.pairing.readCM(l, m)", "m == nil || !l.pairing.readCM(l, m) && false"},
	// transport services
	{"service.go", "return !ud", "return false && !ud"},
	{"service.go", "return busy\n", "return false && busy\n"},
	{"service.go", "return !ud", "return !ud || true"},
	{"service.go", "; !ud && !busy {", "; false && !ud && !busy {"},
	{"service.go", "	if !p.connected(k, l.maps.static) {", "	if true {"},
	{"service.go", "static.names(k.Scope(), k.Src, k.SourceQP) || ", ""},
	{"service.go", " || p.hints.Load().names(k.Scope(), k.Src, k.SourceQP)", ""},
	{"service.go", "h^uint64(k.Scope)^p.secret[4]", "h^p.secret[4]"},
	{"service.go", "flowsAFact = 4", "flowsAFact = 14"},
	{"pair.go", "; ud || busy {", "; ud && false || busy {"},
	{"pair.go", "; ud || busy {", "; ud || busy && false {"},
	{"pair.go", "struct{ from, to *store.Slot }{{slot, peer}, {peer, slot}} {", "struct{ from, to *store.Slot }{{slot, peer}} {"},
	{"pair.go", "struct{ from, to *store.Slot }{{slot, peer}, {peer, slot}} {", "struct{ from, to *store.Slot }{{peer, slot}} {"},
	{"portrule.go", "return later || f.Identity().Unreliable()", "return later"},
	{"portrule.go", "return later || f.Identity().Unreliable()", "return later && false || f.Identity().Unreliable()"},
	{"portrule.go", "ahead > backMargin && ahead < packet.PSNHalf", "ahead < packet.PSNHalf"},
	{"learner.go", "const linger = 1000", "const linger = 1100"},
	{"pair.go", "if ok && answer.State() == Confirmed && !guessed {", "if false && ok && answer.State() == Confirmed && !guessed {"},
	// how a pair is kept
	{"flow.go", "requestsApart  = 1 << 10", "requestsApart  = 1 << 11"},
	{"flow.go", "responsesApart = 1 << 12", "responsesApart = 1 << 13"},
	{"flow.go", "steadyPackets  = 64", "steadyPackets  = 65"},
	{"flow.go", "maxPortChanges = 3", "maxPortChanges = 2"},
	{"flow.go", "&& f.lastUnexpectedPort == p.SrcPort", ""},
	{"flow.go", "const reordering = 1 << 10", "const reordering = 1 << 11"},
	{"flow.go", "f.slot.Link().OwnPort() {\n		own = false", "false {\n		own = false"},
	{"check.go", "const widest = 1 << 16", "const widest = 1 << 17"},
	{"check.go", " || c.flags&unreliable != 0 {\n		return false\n	}\n	if c.lastUnexpected", " {\n		return false\n	}\n	if c.lastUnexpected"},
	{"check.go", "c.lastUnexpected = 0; c.gap == 0 {", "c.lastUnexpected = 0; true {"},
	{"check.go", "ahead <= uint32(c.resumed) || ", ""},
	{"check.go", "|| ahead > uint32(c.resumed)+maxGap {", "{"},
	{"check.go", " || answered == 0 || answered > ahead {", " || answered > ahead {"},
	{"check.go", " || answered == 0 || answered > ahead {", " || answered == 0 {"},
	{"check.go", "const least = 1 << 16", "const least = 1 << 17"},
	{"check.go", "c.answer().Evidence() != EvidenceCM || c.SrcPort != c.port ||", "c.SrcPort != c.port ||"},
	{"psn.go", "nextSlack   = 3", "nextSlack   = 4"},
	{"check.go", "case goesBack && ack.Valid()", "case goesBack && false && ack.Valid()"},
	{"check.go", "case !fresh && ahead < packet.PSNMask-backMargin", "case false && ahead < packet.PSNMask-backMargin"},
	{"check.go", "case c.silentFor(ack, 2):", "case false:"},
	{"check.go", "case !c.awaits() && c.silentFor(ack, 1) &&", "case false &&"},
	{"check.go", "c.silentFor(ack, 1) && !c.mapped():", "c.silentFor(ack, 1):"},
	{"check.go", "if !c.mapped() {", "if true {"},
	{"check.go", "if fit != fits && of && c.mapped() {", "if false {"},
	{"check.go", " && a.SourceQP() == c.DestQP\n", "\n"},
	{"check.go", "if c.awaits() || c.answer().State() != Candidate {", "if c.answer().State() != Candidate {"},
	{"psn.go", "readsAhead = 16", "readsAhead = 12"},
	{"psn.go", "widestRead = 1 << 15", "widestRead = 1 << 16"},
	{"psn.go", "if (f.top-f.first)&packet.PSNMask > maxSpan", "if (f.high-f.first)&packet.PSNMask > maxSpan"},
	{"psn.go", "case packet.PSNAtMost(f.top, psn):", "case packet.PSNAtMost(f.high, psn+span):"},
	{"track.go", "margin     = coarse + 32", "margin     = coarse + 33"},
	{"track.go", "backMargin = 48", "backMargin = 49"},
	{"learn.go", "(ack.Last()-p.PSN)&packet.PSNMask > backMargin", "(p.PSN-ack.Last())&packet.PSNMask < packet.PSNHalf"},
	{"learn.go", "begins := f.flags&sends == 0 && (p.SrcPort == f.port || f.portChanges == maxPortChanges)", "begins := f.flags&sends == 0"},
	{"check.go", "same := a.SourceQP() == c.was.SourceQP() && ", "same := "},
	{"check.go", "a.Evidence() == c.was.Evidence() && ", ""},
	{"check.go", " && a.Evidence() != EvidenceCNP\n", "\n"},
	{"check.go", ".SharedPort() == c.link.SharedPort() {", " != 1 {"},
	{"store/slot.go", "s.p.id, s.p.claim = id, 0", "s.p.id = id"},
	{"store/slot.go", "	s.p.match = 0\n", ""},
	{"learn.go", "f.asks, f.seenCM = 0, 0", "f.asks = 0"},
	{"learner.go", "		case packet.Response:\n			t.acked", "		case packet.Response:\n			t.last = p.PSN\n			t.acked"},
	// slots that another flow has by now
	{"flow.go", "if !f.slot.Has(f.l.ref(f.index)) {", "if false {"},
	{"store/slot.go", "uint16(was>>49) == lease {", "true {"},
	{"store/slot.go", "w := Sent(v.p.sent.Load())\n	if w.lease() != lease {", "w := Sent(v.p.sent.Load())\n	if false {"},
	{"store/slot.go", "w := Ack(v.p.ack.Load())\n	if w.lease() != lease {", "w := Ack(v.p.ack.Load())\n	if false {"},
	{"store/slot.go", "return peer, Sent(peer.p.sent.Load()).lease() == l.Lease()", "return peer, ok"},
	// the budget
	{"learner.go", "burstBudget = 512", "burstBudget = 1024"},
	{"learner.go", "maxBudget   = 2048", "maxBudget   = 4096"},
	{"learner.go", "l.budget -= comparisons", ""},
	{"cm.go", "madCost = 128", "madCost = 1"},
	{"pair.go", "const cnpCost = 64", "const cnpCost = 1"},
	{"pair.go", "	l.budget -= used\n", ""},
	{"pair.go", "		l.counts.skipped()\n		return\n	}\n	defer g.Lock()", "		return\n	}\n	defer g.Lock()"},
	{"pair.go", "used := g.Used(1 - side)", "used := 8"},
	{"learner.go", "if int32(milliseconds(p.now)-ended) > linger", "if milliseconds(p.now)-ended > linger"},
	{"learner.go", "if !l.spend(madCost / 4) {", "if false {"},
	{"learn.go", "case f.compare((f.slot.Others() + 3) / 4):", "case f.lock():"},
	{"judge.go", "l.budget -= f.Own() + f.Others()", ""},
	{"flow.go", "|| !f.l.spend(store.SlotsASide/4)", ""},
	{"branch.go", "return matched >= manyFit &&", "return true ||"},
	{"store/store.go", "	d.marks |= mark\n", ""},
	{"routine.go", "s == known(0) && ", ""},
	{"routine.go", " && t.slot == 0", ""},
	{"store/store.go", "if now < g.full {", "if false {"},
	{"store/evict.go", "return now < full.until && ", "return false && "},
	{"store/evict.go", "most <= 2*own+smallShare {", "false {"},
	{"store/evict.go", "	if _, paired := v.Peer(); paired {\n		return 0\n	}\n", ""},
	{"store/evict.go", "case !group || ", "case true || "},
	{"store/evict.go", "case burdens[i] <= most || ", "case burdens[i] == 0 || "},
	{"store/tree.go", "if g.Flows(v.Side()) >= int(g.attached[v.side]) {", "if false {"},
}

var weakened = flag.Int("mutants", 8*effort.Long, "how many mutants TestMutants tries: each takes half a minute")

// TestMutants weakens the bounds and conditions of the rules one by one, a number of them in a drawn order. Each time a test must fail. CNPGATE_SEED repeats a run.
func TestMutants(t *testing.T) {
	t.Setenv("RAPID_NOFAILFILE", "1") // later runs would try what a mutant fails with
	seed := mutate.Seed()
	t.Logf("CNPGATE_SEED=%d", seed)
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(mutants))
	for i, m := range mutants {
		t.Run(m.file+": "+m.from, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), m.from) != 1 {
				t.Fatalf("%d times, want once", strings.Count(string(source), m.from))
			}
			if order[i] < *weakened {
				m.survives(t, strings.Replace(string(source), m.from, m.to, 1))
			}
		})
	}
}

// survives runs this package's tests with the mutant instead of its file. It fails the test if they pass, or don't compile.
func (m *mutant) survives(t *testing.T, source string) {
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, filepath.Base(m.file)), filepath.Join(dir, "overlay.json")
	here, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {here: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{mutated: source, overlay: string(replace)} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=2m", "-failfast", "-skip=^(TestNeverWrong|TestMutants)$", "./...").CombinedOutput()
	switch {
	case err == nil:
		t.Error("no test fails")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: "):
		t.Errorf("it doesn't run: %s", out)
	}
}
