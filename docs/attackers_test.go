package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/pairing"
)

// TestAttackers: each kind of evidence has a row of the attacker table in qp-rules.md, so has each kind of forged packet, and each row names
// tests that exist.
func TestAttackers(t *testing.T) {
	page, err := os.ReadFile("qp-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Attackers\n")
	section, _, _ = strings.Cut(section, "\n## ")
	c, root := compliance{}, &tree{root: os.DirFS(".."), text: map[string]string{}}
	rows := map[string]bool{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Evidence |") || strings.HasPrefix(line, "| Forged packet |") {
			continue
		}
		row := cells(strings.TrimSpace(line))
		name := row[0]
		if rows[name] = true; len(row) != 4 {
			t.Errorf("%s: %d cells, want 4", name, len(row))
		}
		tests := c.names(name, row[len(row)-1])
		if len(tests) == 0 {
			t.Errorf("%s: no test", name)
		}
		for _, proof := range tests {
			if err := root.has(proof); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, m := range c.mistakes {
		t.Error(m)
	}
	want := []string{"data, other requests", "ACK, NAK, READ or atomic response", "UD", "CNP", "REQ", "REP", "DREQ", "REJ", "MRA, RTU, DREP, LAP, APR, SIDR"}
	for e := pairing.EvidenceStatic; e < pairing.Evidences; e++ {
		name := "`" + e.String() + "`"
		if e == pairing.EvidencePort {
			want = append(want, name+", by the formula")
			name += ", equal"
		}
		want = append(want, name)
	}
	for _, name := range want {
		if !rows[name] {
			t.Errorf("no row for %s", name)
		}
	}
}
