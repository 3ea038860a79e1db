package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/pairing"
)

// provenRows are the rows of a section's tables of four columns, by their first cell. The last cell names tests that exist.
func provenRows(t *testing.T, file, heading string) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	c, root := compliance{}, &tree{root: os.DirFS(".."), text: map[string]string{}}
	rows := map[string]bool{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") || strings.HasSuffix(line, "| Tests |\n") {
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
	return rows
}

// TestThreats: each threat of SECURITY.md has what stops it, and tests that exist.
func TestThreats(t *testing.T) {
	if rows := provenRows(t, "../SECURITY.md", "Threats"); len(rows) < 12 {
		t.Errorf("%d threats, want 12 or more", len(rows))
	}
}

// TestShortages: what happens when something is full has tests that exist.
func TestShortages(t *testing.T) {
	if rows := provenRows(t, "operations.md", "When something is full"); len(rows) < 8 {
		t.Errorf("%d rows, want 8 or more", len(rows))
	}
}

// TestAttackers: each kind of evidence has a row of the attacker table in qp-rules.md, so has each kind of forged packet, and each row names
// tests that exist.
func TestAttackers(t *testing.T) {
	rows := provenRows(t, "qp-rules.md", "Attackers")
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
