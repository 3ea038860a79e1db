package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"github.com/cnpgate/cnpgate/control/config"
	"github.com/cnpgate/cnpgate/flowtable"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
	"github.com/cnpgate/cnpgate/internal/yamldoc"
	"github.com/cnpgate/cnpgate/pairing"
	"github.com/cnpgate/cnpgate/proxy"
	"github.com/cnpgate/cnpgate/telemetry"
)

// declared is the value of a constant that a source file declares, in whole units or nanoseconds.
func declared(t *testing.T, file, name string) int64 {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := int64(-1)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		for i := 0; ok && i < len(spec.Names) && i < len(spec.Values); i++ {
			if v, exact := constant.Int64Val(evaluate(spec.Values[i])); spec.Names[i].Name == name && exact {
				found = v
			}
		}
		return true
	})
	if found < 0 {
		t.Errorf("%s declares no number %s", file, name)
	}
	return found
}

// evaluate is the value of an expression of numbers and units of time, of unknown kind for any other.
func evaluate(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.ToInt(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.SelectorExpr:
		if unit, ok := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Microsecond": time.Microsecond}[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		x, y := evaluate(e.X), evaluate(e.Y)
		if x.Kind() != constant.Int || y.Kind() != constant.Int {
			break
		}
		if bits, ok := constant.Uint64Val(y); ok && e.Op == token.SHL {
			return constant.Shift(x, token.SHL, uint(bits))
		}
		return constant.BinaryOp(x, e.Op, y)
	}
	return constant.MakeUnknown()
}

// grouped is a number with commas between thousands.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// octets is the length of a golden notification without its tags.
func octets(name string, tags int) int { return len(notifications.Find(name).Bytes()) - 4*tags }

// queueMB is the capacity that a WAN port of a rate gets by default.
func queueMB(t *testing.T, rate string) string {
	t.Helper()
	c, err := config.Parse("facts", fmt.Appendf(nil, `gateway: {name: a, ipv4: 192.0.2.1}
ports:
  - {name: lan, device: net_null0, role: fabric, peer: wan, rate: %[1]s}
  - {name: wan, device: net_null1, role: wan, peer: lan, rate: %[1]s, rtt: 10ms}
`, rate))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(float64(c.Ports[1].Capacity) / 1e6)
}

// TestFacts: what the pages say of the program's limits, times, sizes and numbers is what the program has.
func TestFacts(t *testing.T) {
	d := func(file, name string) int64 { return declared(t, "../"+file, name) }
	ms := int64(time.Millisecond)
	code := packet.DefaultCodePoints
	var evidence []string
	for e := pairing.EvidenceStatic; e < pairing.Evidences; e++ {
		evidence = append(evidence, e.String())
	}
	for _, f := range []struct {
		page, says string
		values     []any
	}{
		{"operations.md", "A worker that has not stepped for %d ms", []any{d("control/heart.go", "stallAfter") / ms}},
		{"operations.md", "| %d | A worker panicked", []any{d("control/worker.go", "PanicStatus")}},
		{"metrics.md", "Histograms have %d buckets", []any{telemetry.Buckets}},
		{"metrics.md", "The server has at most %d connections", []any{d("control/metrics/metrics.go", "maxConnections")}},
		{"metrics.md", "while %d were watched", []any{d("dataplane/notify/senders.go", "watchedSenders")}},
		{"api.md", "413 more than %d bytes", []any{d("control/api/request.go", "maxBody")}},
		{"api.md", "At most %s, until the gateway restarts", []any{grouped(d("control/api/hints.go", "maxHints"))}},
		{"api.md", "`interval` (10ms to %ds)", []any{d("control/api/flows.go", "MaxInterval") / 1000 / ms}},
		{"troubleshooting.md", "keeps its latest %s notifications", []any{grouped(d("dataplane/notify/history.go", "historyRecords"))}},
		{"troubleshooting.md", "%d episodes are kept", []any{d("control/episode/episode.go", "kept")}},
		{"configuration.md", "the first %d in full", []any{yamldoc.MaxProblems}},
		{"configuration.md", "files above %d MiB are refused", []any{yamldoc.MaxFile >> 20}},
		{"configuration.md", "1 to %d letters, digits", []any{d("internal/yamldoc/form.go", "maxName")}},
		{"configuration.md", "full at 5 ms of the rate, %d to %d MB", []any{d("congestion/law.go", "lawFullLeast") / 1e6, d("congestion/law.go", "lawFullMost") / 1e6}},
		{"configuration.md", "| `qp_map[].tunnel` | `%s`, and", []any{strings.NewReplacer(", ", "`, `", " or ", "` or `").Replace(yamldoc.Either(packet.TunnelNames()))}},
		{"configuration.md", "is %d at K_min, %d at K_max", []any{d("congestion/severity.go", "levelAtKMin"), d("congestion/severity.go", "levelAtKMax")}},
		{"decisions.md", "Congestion Level / 32: %d at K_min, %d at K_max", []any{packet.ProxyLevel(42), packet.ProxyLevel(177)}},
		{"decisions.md", "one label stack (%d labels)", []any{d("internal/packet/mpls.go", "maxLabels")}},
		{"wire-formats.md", "| %d IPv4, %d IPv6 | yes |", []any{octets("standard-cnp-v4", 0), octets("standard-cnp-v6-tagged", 1)}},
		{"wire-formats.md", "| Destination Options, UDP 4791, BTH | %d | yes |", []any{octets("fast-cnp", 0)}},
		{"wire-formats.md", "UDP 4791, BTH, E bit | %d IPv4, %d IPv6", []any{octets("long-haul-cnp-v4", 0), octets("long-haul-cnp-v6-tagged", 1)}},
		{"wire-formats.md", "| ICMPv6 | %d, + objects", []any{octets("long-haul-cnp-icmpv6", 0)}},
		{"wire-formats.md", "P bit | %d IPv4, %d IPv6 |", []any{octets("ppfc-v4-pause", 0), octets("ppfc-v6-resume-tagged", 1)}},
		{"wire-formats.md", "TBD1 | 0x%X | `notifications.fast_cnp.option_type`", []any{code.FastCNPOption}},
		{"wire-formats.md", "| %d | `notifications.long_haul_cnp.icmpv6_type`", []any{code.LongHaulICMPv6Type}},
		{"wire-formats.md", "| %d | `notifications.long_haul_cnp.extension_class`", []any{code.ExtensionClass}},
		{"wire-formats.md", "| %d | `proxy.port`", []any{code.ProxyPort}},
		{"wire-formats.md", "at most %d octets of node data", []any{packet.MaxOptionTrace - packet.IOAMTraceHeaderLen}},
		{"qp-rules.md", "| %d a flow of `flows.paired` |", []any{(pairing.Size(32<<10) + 1<<15 - 1) >> 15}},
		{"configuration.md", "(`qp_unpaired_total`). %d bytes each", []any{(pairing.Size(32<<10) + 1<<15 - 1) >> 15}},
		{"qp-rules.md", "By default %.0f MiB a worker, and %.1f MiB", []any{float64(flowtable.Size(1<<20)+pairing.LearnerSize(1<<20, 32<<10)) / (1 << 20), float64(pairing.Size(32<<10)) / (1 << 20)}},
		{"qp-rules.md", "| %d a flow of `flows.paired`, each worker", []any{(pairing.LearnerSize(1, 2<<10) - pairing.LearnerSize(1, 1<<10)) >> 10}},
		{"qp-rules.md", "a queue of %s a worker", []any{grouped(d("pairing/cm/queue.go", "MaxWaiting"))}},
		{"qp-rules.md", "which keeps up to %d", []any{d("pairing/learner.go", "maxBudget")}},
		{"qp-pairing.md", "| `%s` (`qp_map`), `%s`, `%s`, `%s`, `%s`, `%s`, `%s`, best first", []any{evidence[0], evidence[1], evidence[2], evidence[3], evidence[4], evidence[5], evidence[6]}},
		{"proxy.md", "the map has %d entries", []any{proxy.MaxSenders}},
		{"planning.md", "| %s MB | 204 | 336 |", []any{queueMB(t, "10Gbps")}},
		{"planning.md", "| %s MB | 532 | 900 |", []any{queueMB(t, "100Gbps")}},
		{"planning.md", "| %s MB | 2030 | 3471 |", []any{queueMB(t, "400Gbps")}},
	} {
		text := strings.Join(strings.Fields(readPage(t, f.page)), " ")
		if want := fmt.Sprintf(f.says, f.values...); !strings.Contains(text, want) {
			t.Errorf("%s: expected %q, as the program has it", f.page, want)
		}
	}
}
