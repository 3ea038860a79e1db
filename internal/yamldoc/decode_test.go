package yamldoc

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// sample is a document with each kind of key.
type sample struct {
	Name  string         `key:"name" form:"name" required:"yes"`
	Hosts []hostSection  `key:"hosts" most:"3"`
	Kinds Table[kindOf]  `key:"kinds"`
	Both  *pair          `key:"both" absent:"off" reload:"restart" because:"it is read once"`
	Every time.Duration  `key:"every" default:"10ms" min:"1ms" max:"1s"`
	Ports []uint16       `key:"ports" default:"[1, 2]" items:"1" min:"1" max:"65535" unique:"the port %"`
	Mode  bool           `key:"mode" default:"off" one:"off|on"`
	At    netip.AddrPort `key:"at" form:"socket" default:"127.0.0.1:1"`
	Other Embedded       `key:"other"`
	_     struct{}       `key:"old" removed:"is called every now"`
}

type hostSection struct {
	Address netip.Addr `key:"address" required:"yes" unique:"the address %"`
	Rate    uint64     `key:"rate" form:"rate" mode:"fast" default:"1Gbps"`
}

type kindOf struct {
	Word string `key:"word" one:"a|b"`
}

type pair struct {
	Left  string `key:"left" required:"given" with:"right"`
	Right string `key:"right" with:"left"`
	Up    string `key:"up" without:"down"`
	Down  string `key:"down"`
}

func decoded(t *testing.T, text string) (*Document, *sample, *Node) {
	t.Helper()
	d, err := Parse("f", "name", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{}
	return d, s, d.Decode(s)
}

const whole = `name: x
hosts: [{address: 10.0.0.1, rate: 2Gbps}, {address: 10.0.0.2}]
kinds: {one: {word: b}, two: {}}
both: {left: l, right: r}
ports: [7]
mode: on
other: {any: thing}
`

func TestDecode(t *testing.T) {
	d, s, root := decoded(t, whole)
	if err := d.Err(); err != nil {
		t.Fatal(err)
	}
	if s.Name != "x" || len(s.Hosts) != 2 || s.Hosts[0].Rate != 2e9 || s.Hosts[1].Rate != 1e9 || !slices.Equal(s.Kinds.Names, []string{"one", "two"}) || s.Kinds.Entries[0].Word != "b" ||
		s.Both == nil || s.Both.Right != "r" || s.Every != 10*time.Millisecond || !slices.Equal(s.Ports, []uint16{7}) || !s.Mode || s.At.Port() != 1 || s.Other.Node == nil {
		t.Errorf("%+v", s)
	}
	if !d.Given(&s.Hosts[0].Rate) || d.Given(&s.Hosts[1].Rate) || !d.Valid(&s.Hosts[1].Rate) || d.Position(&s.Hosts[1].Address).Column != 53 || d.At(s.Both) != root.Find("both") {
		t.Errorf("%+v", d.At(&s.Hosts[1].Address))
	}
	if _, s, _ := decoded(t, "name: x\n"); s.Both != nil || !slices.Equal(s.Ports, []uint16{1, 2}) {
		t.Errorf("defaults: %+v", s)
	}
	if keys := root.GivenIn("fast"); len(keys) != 1 || keys[0].Path != "hosts[0].rate" {
		t.Errorf("%d keys of a mode", len(keys))
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"hosts: []\n":                "f:1:1: name: missing; expected letters, digits, '.', '_' and '-', at most 64",
		"name: x\nold: 5\n":          "f:2:1: old: is called every now",
		"name: x\nevry: 5ms\n":       "f:2:1: evry: unknown key; did you mean every?",
		"name: x\nboth: {}\n":        "f:2:7: both.left: missing; expected a text",
		"name: x\nboth: {left: l}\n": "f:2:14: both.left: right is not given; expected both, or neither",
		"name: x\nboth: {left: l, right: r, up: u, down: d}\n": "f:2:31: both.up: down is given too (f:2:40); expected one of them",
		"name: x\nboth: 5\n":            "f:2:7: both: expected keys with values, found \"5\"",
		"name: x\nevery: 2s\n":          "f:2:8: every: \"2s\" is too high; expected 1ms to 1s",
		"name: x\nports: [3, 3]\n":      "f:2:12: ports[1]: the port 3 is given twice; ports[0] at f:2:9 also has it",
		"name: x\nports: []\n":          "f:2:8: ports: expected a list of at least 1, found 0",
		"name: x\nmode: On\n":           "f:2:7: mode: \"On\" is not known; did you mean on? Expected off or on",
		"name: x\nkinds: {'a b': {}}\n": "f:2:9: kinds.\"a b\": not a name",
		"name: x\nhosts: [{address: 10.0.0.1}, {address: 10.0.0.1}]\n": "f:2:40: hosts[1].address: the address 10.0.0.1 is given twice",
	} {
		d, _, _ := decoded(t, text)
		if err := d.Err(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// TestNodes: what is shown is read to the same document, and changes have what they need.
func TestNodes(t *testing.T) {
	_, _, root := decoded(t, whole)
	text := Dump{Mode: "fast"}.Text(root)
	for _, want := range []string{"name: x\n", "# every: 10ms\n", "    rate: 2Gbps\n", "#     rate: 1Gbps\n", "ports: [7]\n", "  two: {}\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, _, again := decoded(t, text+"other: {}\n")
	changes := func(now *Node) (all []string) {
		Compare(now, root, func(n *Node, needs Needs) { all = append(all, n.Path+" "+needs.Reload.String()+needs.Because) })
		return all
	}
	if all := changes(again); all != nil {
		t.Errorf("%q differ in\n%s", all, text)
	}
	_, _, other := decoded(t, strings.NewReplacer("[7]", "[7, 8]", "left: l", "left: m").Replace(whole))
	if all := changes(other); !slices.Equal(all, []string{"both.left restartit is read once", "ports live"}) {
		t.Errorf("%q", all)
	}
}
