//go:build long

package pairing

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is one bound or check of a rule, weakened.
type mutant struct{ file, from, to string }

var mutants = []mutant{
	// the evidence of a rule, and how much is enough
	{"judge.go", "const sureBits = 20", "const sureBits = 19"},
	{"judge.go", "evidence + 2*(bits.Len", "evidence + 3*(bits.Len"},
	{"judge.go", "- bits.Len(uint(hidden-1))", "- 0*hidden"},
	{"judge.go", "(max(one-matched, 0) + 1) * ", "1 * "},
	{"judge.go", " * (max(other-matched, 0) + 1)", " * 1"},
	{"judge.go", "2*int(max(a.contradictions, b.contradictions))", "int(max(a.contradictions, b.contradictions))"},
	{"judge.go", "int(min(max(a.retries, b.retries), maxRetries))", "0"},
	{"judge.go", ">= 1<<contradictions", ">= 1"},
	{"makePair.go", "const maxContradictions = 5", "const maxContradictions = 4"},
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
	{"portrule.go", "!pl.id().unreliable() && !responded(pl, peer) && !responded(peer, pl)", "false"},
	{"portrule.go", "&& 2*one.formula > one.equal", ""},
	{"portrule.go", "&& 2*other.formula > other.equal", ""},
	{"portrule.go", "if 2*shared > flows {", "if false {"},
	{"portrule.go", "pl.sent().valid() && !responded(pl, peer) ||", ""},
	{"portrule.go", "|| peer.sent().valid() && !responded(peer, pl)", ""},
	{"portrule.go", "if back.n != pl.Number() || back.formula != m.formula {", "if back.n < 0 {"},
	{"portrule.go", "if !id.steady() {", "if false {"},
	{"portrule.go", "case fits == 0 && m.left == 1:", "case m.left == 1:"},
	{"portrule.go", "return a.steady() && b.steady() && ", "return "},
	{"portrule.go", "if n++; !twice.add", "if !twice.add"},
	{"portrule.go", "			n++ // the first", "			// the first"},
	{"portrule.go", "	clear(l.ports[:])\n", ""},
	{"portrule.go", "	pl.p.match[pl.k] = 0\n", ""},
	// PSNs
	{"psnrule.go", "maxExact    = 40", "maxExact    = 41"},
	{"psnrule.go", "farApart    = 1 << 16", "farApart    = 1 << 15"},
	{"psnrule.go", "minAgreeing = 4", "minAgreeing = 3"},
	{"psnrule.go", "evidence := 24 - ", "evidence := 25 - "},
	{"psnrule.go", "bits.Len(firstSlack)", "bits.Len(0)"},
	{"psnrule.go", "n > 1 && 4*far < 3*(n-1) ||", "far < 0 ||"},
	{"psnrule.go", "|| n == 1 && near0(requester.sent().first())", ""},
	{"psnrule.go", " && p.columnIs(&peer, pl.Number())", ""},
	{"psnrule.go", " && p.bothWays(pl, &peer)", ""},
	{"psnrule.go", "return ok && a.Usable()", "return ok || a.Usable()"},
	{"note.go", "firstSlack = 63", "firstSlack = 64"},
	{"note.go", "maxSpan = 1 << 20", "maxSpan = 1 << 21"},
	{"note.go", "maxGap  = 64", "maxGap  = 65"},
	// RDMA-CM
	{"cmrule.go", "const claimDelay = 1", "const claimDelay = 2"},
	{"cmrule.go", "<= firstSlack\n}", "<= firstSlack+1\n}"},
	{"cmrule.go", "a.sent().valid() && !a.begun() ||", ""},
	{"cmrule.go", "|| b.sent().valid() && !b.begun()", ""},
	{"cmrule.go", "return p.respondedAsClaimed(a, b) || p.respondedAsClaimed(b, a)", "return true"},
	{"cmrule.go", "return !near0(pl.claimed().psn()) || p.ownPort(pl, o)", "return p.ownPort(pl, o) || true"},
	{"cmrule.go", "near0(a.claimed().psn()) || ", ""},
	{"cmrule.go", " || near0(b.claimed().psn())", ""},
	{"cmrule.go", " && !p.ownPort(a, b) {", " && false {"},
	{"cmrule.go", "&& o.elimination().plausible >= minAgreeing", ""},
	{"cm.go", "(m.LocalGID != k.Src || m.RemoteGID != k.Dst)", "false"},
	{"cm.go", "if r.have == 3 || r.have>>m.side&1 != 0 {", "if false {"},
	{"cm.go", "at != nil && at.time == made", "at != nil"},
	{"cm.go", "c.claim.owner != c.owner", "false"},
	{"cm.go", "p.aging > 0 && now-at.time > p.aging", "false"},
	{"cm.go", " || p.cm.claimThat(claimHash(group, 1-side, at.sourceQP), qp) == nil {", " {"},
	{"cm.go", "r.have, r.port = 0, 0", "r.have = 0"},
	{"cm.go", "r.comm[1-m.side] == m.remote && (m", "(m"},
	{"cm.go", " || r.qpn[1-m.side] == m.qpn", " || true"},
	{"cm.go", "h>>1%uint64(len(r.claims))", "h%uint64(len(r.claims))"},
	{"cm.go", "c != nil && c.time != r.time {", "c != nil && false {"},
	{"cm.go", "if !m.close(l, r) {", "if m.close(l, r); false {"},
	{"waiting.go", "t != 0 && t < m.time", "t != 0 && false"},
	{"waiting.go", "excess >= len(q.of)-waitingShares*ownWaiting-q.common", "false"},
	{"waiting.go", "readsAtOnce = 4", "readsAtOnce = 5"},
	{"waiting.go", "m == nil || !l.readCM(m)", "m == nil || !l.readCM(m) && false"},
	// transport services
	{"service.go", "return !ud", "return false && !ud"},
	{"service.go", "return busy\n", "return false && busy\n"},
	{"service.go", "return !ud", "return !ud || true"},
	{"service.go", "; !ud && !busy {", "; false && !ud && !busy {"},
	{"service.go", "	if !l.connected(k) {", "	if true {"},
	{"service.go", "l.static.names(k.Src, k.SourceQP) || ", ""},
	{"service.go", " || p.hints.Load().names(k.Src, k.SourceQP)", ""},
	{"service.go", "h^k.slot^p.secret[4]", "h^p.secret[4]"},
	{"service.go", "flowsAFact = 4", "flowsAFact = 14"},
	{"makePair.go", "; ud || busy {", "; busy {"},
	{"makePair.go", "; ud || busy {", "; ud {"},
	{"makePair.go", ", {peer, pl}} {", "} {"},
	{"makePair.go", "{{pl, peer}, ", "{"},
	{"portrule.go", "if later || pl.id().unreliable() {", "if later {"},
	{"portrule.go", "if later || pl.id().unreliable() {", "if later && false || pl.id().unreliable() {"},
	{"portrule.go", "ahead > backMargin && ahead < psnHalf", "ahead < psnHalf"},
	{"enter.go", "const linger = 1000", "const linger = 1100"},
	{"makePair.go", "if ok && answer.State() == Confirmed && !guessed {", "if false && ok && answer.State() == Confirmed && !guessed {"},
	// how a pair is kept
	{"fitOf.go", "requestsApart  = 1 << 10", "requestsApart  = 1 << 11"},
	{"fitOf.go", "responsesApart = 1 << 12", "responsesApart = 1 << 13"},
	{"fitOf.go", "steadyPackets = 64", "steadyPackets = 65"},
	{"fitOf.go", "maxPortChanges    = 3", "maxPortChanges    = 2"},
	{"fitOf.go", "&& n.unexpectedPort == p.SrcPort", ""},
	{"fitOf.go", "const reordering = 1 << 10", "const reordering = 1 << 11"},
	{"fitOf.go", "link(s.pl.p.peer[s.pl.k].Load()).ownPort() {\n\t\town = false", "false {\n\t\town = false"},
	{"check.go", "const widest = 1 << 16", "const widest = 1 << 17"},
	{"check.go", " || s.t.flags&unreliable != 0 {\n\t\treturn false\n\t}\n\tif n.unexpected", " {\n\t\treturn false\n\t}\n\tif n.unexpected"},
	{"check.go", "n.unexpected = 0; n.gap == 0 {", "n.unexpected = 0; true {"},
	{"check.go", "ahead <= uint32(n.resumed) || ", ""},
	{"check.go", "|| ahead > uint32(n.resumed)+maxGap {", "{"},
	{"check.go", " || answered == 0 || answered > ahead {", " || answered > ahead {"},
	{"check.go", " || answered == 0 || answered > ahead {", " || answered == 0 {"},
	{"check.go", "const least = 1 << 16", "const least = 1 << 17"},
	{"check.go", "s.answer().Evidence() != EvidenceCM || s.p.SrcPort != s.t.port ||", "s.p.SrcPort != s.t.port ||"},
	{"check.go", "nextSlack = 3", "nextSlack = 4"},
	{"check.go", "case goesBack && ack.valid()", "case goesBack && false && ack.valid()"},
	{"check.go", "case !fresh && ahead < psnMask-backMargin", "case false && ahead < psnMask-backMargin"},
	{"check.go", "case s.silentFor(ack, 2):", "case false:"},
	{"check.go", "case !n.awaits() && s.silentFor(ack, 1) &&", "case false &&"},
	{"check.go", "s.silentFor(ack, 1) && !s.mapped(peer):", "s.silentFor(ack, 1):"},
	{"check.go", "if !s.mapped(peer) {", "if true {"},
	{"check.go", "if fit != fits && of && s.mapped(peer) {", "if false {"},
	{"check.go", " && a.SourceQP() == s.p.DestQP\n", "\n"},
	{"check.go", "if s.n.awaits() || s.answer().State() != Candidate {", "if s.answer().State() != Candidate {"},
	{"requests.go", "readsAhead = 16", "readsAhead = 12"},
	{"requests.go", "widestRead = 1 << 15", "widestRead = 1 << 16"},
	{"requests.go", "if (n.top-n.first)&psnMask > maxSpan", "if (n.high-n.first)&psnMask > maxSpan"},
	{"requests.go", "case atMost(n.top, psn):", "case atMost(n.high, psn+span):"},
	{"track.go", "margin     = 2 * coarse", "margin     = 3 * coarse"},
	{"track.go", "backMargin = 3 * coarse", "backMargin = 4 * coarse"},
	{"learn.go", "(ack.last()-s.p.PSN)&psnMask > backMargin", "(s.p.PSN-ack.last())&psnMask < psnHalf"},
	{"learn.go", "begins := s.t.flags&sends == 0 && (s.p.SrcPort == s.t.port || s.n.portChanges == maxPortChanges)", "begins := s.t.flags&sends == 0"},
	{"check.go", "same := a.SourceQP() == s.saw.SourceQP() && ", "same := "},
	{"check.go", "a.Evidence() == s.saw.Evidence() && ", ""},
	{"check.go", " && a.Evidence() != EvidenceCNP\n", "\n"},
	{"check.go", ".sharedPort() == m.sharedPort() {", " != 1 {"},
	{"allocate.go", "pg.id[k], pg.claimed[k] = id, 0", "pg.id[k] = id"},
	{"allocate.go", "	pg.match[k] = 0\n", ""},
	{"learn.go", "n.asks, n.seenCM = 0, 0", "n.asks = 0"},
	{"learner.go", "		case packet.Response:\n			t.acked", "		case packet.Response:\n			t.last = p.PSN\n			t.acked"},
	// slotSet that another flow has by now
	{"learner.go", "if s.pl.owner() != s.l.ref(s.x) {", "if false {"},
	{"group.go", "uint16(was>>49) == lease {", "true {"},
	// the budget
	{"learner.go", "burstBudget = 512", "burstBudget = 1024"},
	{"learner.go", "maxBudget   = 2048", "maxBudget   = 4096"},
	{"learner.go", "l.budget -= comparisons", ""},
	{"cm.go", "const madCost = 128", "const madCost = 1"},
	{"cnp.go", "const cnpCost = 64", "const cnpCost = 1"},
	{"cnp.go", "	l.budget -= used\n", ""},
	{"cnp.go", "		l.skipped()\n		return\n	}\n	defer g.lock", "		return\n	}\n	defer g.lock"},
	{"cnp.go", "used := int(g.used[1-side].Load())", "used := slotsAPage"},
	{"enter.go", "if int32(milliseconds(now)-ended) > linger", "if milliseconds(now)-ended > linger"},
	{"enter.go", "if !l.spend(madCost / 4) {", "if false {"},
	{"learn.go", "case s.compare((s.pl.others() + 3) / 4):", "case s.lockGroup():"},
	{"judge.go", "l.budget -= pl.own() + pl.others()", ""},
	{"enter.go", "|| !s.l.spend(slotsASide/4)", ""},
	{"allocate.go", "if now < g.full[side] {", "if false {"},
}

// TestMutants weakens the bounds and guards of the rules one by one. Each time a test must fail.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.file+": "+m.from, func(t *testing.T) {
			t.Parallel()
			source, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), m.from) != 1 {
				t.Fatalf("%d slotSet, want one", strings.Count(string(source), m.from))
			}
			m.survives(t, strings.Replace(string(source), m.from, m.to, 1))
		})
	}
}

// survives runs this package's tests with the mutant in slot of its file. It fails the test if they pass, or don't compile.
func (m *mutant) survives(t *testing.T, source string) {
	dir := t.TempDir()
	mutated, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
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
	out, err := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-count=1", "-timeout=2m", "-failfast", "-skip=^TestNeverWrong$", ".").CombinedOutput()
	switch {
	case err == nil:
		t.Error("no test fails")
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic: "):
		t.Errorf("it doesn't run: %s", out)
	}
}
