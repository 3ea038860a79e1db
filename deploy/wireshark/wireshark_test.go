//go:build secondopinion

// Package wireshark_test runs the dissector in tshark.
package wireshark_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/cnpdec"
	"github.com/cnpgate/cnpgate/control/capturefile"
	"github.com/cnpgate/cnpgate/control/decode"
	"github.com/cnpgate/cnpgate/internal/packet"
	"github.com/cnpgate/cnpgate/internal/testkit/notifications"
)

const root = "../.."

// plain runs tshark without the dissector.
func plain(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command("tshark", append([]string{"-n"}, args...)...)
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir()) // nobody's own plugins and preferences
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil || strings.Contains(strings.ToLower(stderr.String()), "lua") {
		t.Fatalf("tshark %q: %v\n%s", args, err, stderr.String())
	}
	return string(out)
}

// dissected runs tshark with it.
func dissected(t *testing.T, args ...string) string {
	t.Helper()
	return plain(t, append([]string{"-X", "lua_script:cnpgate.lua"}, args...)...)
}

// golden are the fields of the golden notifications, by the name of each, as the dissector shows them with preferences.
func golden(t *testing.T, preferences ...string) map[string]map[string]string {
	t.Helper()
	key := strings.Join(preferences, ", ")
	if shown[key] != nil {
		return shown[key] // a start of tshark takes a second
	}
	fields := []string{"_ws.col.Protocol", "_ws.col.Info"}
	for _, name := range dissectors {
		fields = append(fields, "cnpgate."+name)
	}
	args := []string{"-r", filepath.Join(root, "testdata/notifications/golden.pcap"), "-T", "fields", "-E", "aggregator=;"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	for _, p := range preferences {
		args = append(args, "-o", "cnpgate."+p)
	}
	all := map[string]map[string]string{}
	for i, line := range lines(dissected(t, args...)) {
		frame := map[string]string{}
		for f, text := range line {
			frame[strings.TrimPrefix(fields[f], "cnpgate.")] = text
		}
		all[notifications.All[i].Name] = frame
	}
	shown[key] = all
	return all
}

var shown = map[string]map[string]map[string]string{}

// lines are the fields of each frame; the last field of a line is never missing.
func lines(out string) [][]string {
	var all [][]string
	for _, l := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		if l != "" {
			all = append(all, strings.Split(l, "\t"))
		}
	}
	return all
}

// dissectors are the dissector's names of fields, without "cnpgate.", in the order of its script.
var dissectors = func() (all []string) {
	script, err := os.ReadFile("cnpgate.lua")
	if err != nil {
		panic(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^field\("\w+", "([\w.]+)"`).FindAllStringSubmatch(string(script), -1) {
		all = append(all, m[1])
	}
	return all
}()

// nameOf is the dissector's name of a field of a golden notification, "" if it has none. An address has 4 or 6 behind its name where both
// families have a field.
func nameOf(l *notifications.Line) string {
	name := l.Name
	if other := map[string]string{"bth.extension_bit": "bth.extension", "ppfc.duration_us": "ppfc.duration"}[name]; other != "" {
		name = other
	}
	if a, is := l.Value.(netip.Addr); is && !slices.Contains(dissectors, name) {
		name += map[bool]string{true: "4", false: "6"}[a.Is4()]
	}
	if !slices.Contains(dissectors, name) {
		return ""
	}
	return name
}

// undissected are fields, and layers of fields, of golden notifications that the dissector leaves to others, or shows in parts.
var undissected = []string{"ethernet.", "vlan", "ip.", "ipv6.", "udp.", "dstopts.", "icmpv6.type", "icmpv6.checksum", "bth.flags", "bth.se_m_pad_tver",
	"bth.a_reserved", "ioam.lengths", "long_haul_cnp.action_flags", "extension.version_reserved", "ppfc.flags_pt", "proxy.version_level"}

// flags are the dissector's names of bits of the BTH's octet 4.
var flags = map[int]string{7: "bth.fecn", 6: "bth.becn", 5: "bth.extension"}

// value is the dissector's form of a line's value: numbers as they are, octets in hexadecimal.
func value(l *notifications.Line) (name, text string) {
	name = nameOf(l)
	switch v := l.Value.(type) {
	case netip.Addr:
		return name, v.String()
	case int:
		switch l.Name {
		case "object.padding":
			return name, hex.EncodeToString(l.Octets)
		case "icrc":
			v = int(binary.LittleEndian.Uint32(l.Octets))
		}
		return name, strconv.Itoa(v)
	}
	return name, hex.EncodeToString(l.Octets)
}

// number is a number in decimal, whatever way it was written in.
func number(s string) string {
	if n, err := strconv.ParseUint(s, 0, 64); err == nil && strings.HasPrefix(s, "0x") {
		return strconv.FormatUint(n, 10)
	}
	return s
}

// interpreted are the dissector's fields that say what others mean, of which no golden notification has a field.
var interpreted = []string{"object.timestamp", "object.path", "object.device", "fast_cnp.option"}

// TestFields: the dissector shows each field of every golden notification with its value, and no other fields.
func TestFields(t *testing.T) {
	said := map[string]map[string]map[string]string{"ppfc": golden(t, "extension:PPFC"), "none": golden(t), "long-haul": golden(t)}
	seen := map[string]bool{}
	for i := range notifications.All {
		g := &notifications.All[i]
		if g.Kind == "pause" || g.Kind == "pfc" {
			continue // Wireshark's own
		}
		want := map[string][]string{"kind": {g.Kind}}
		for _, l := range g.Lines() {
			if l.Name == "bth.flags" {
				for bit, name := range flags {
					want[name] = []string{strconv.Itoa(l.Number() >> bit & 1)}
				}
			}
			name, text := value(&l)
			if name == "" && !slices.ContainsFunc(undissected, func(prefix string) bool { return strings.HasPrefix(l.Name, prefix) }) {
				t.Errorf("%s: the dissector has no %s", g.Name, l.Name)
			}
			if seen[name] = true; name == "" || l.Mask != 0 && strings.HasPrefix(name, "bth.") { // bits of bth.flags
				continue
			}
			if name == "ioam.node_data" && want[name] != nil {
				want[name][0] += text // one run of octets, whatever nodes it is of
				continue
			}
			want[name] = append(want[name], text)
		}
		for _, name := range dissectors {
			if slices.Contains(interpreted, name) {
				continue
			}
			got := strings.Split(said[g.Extension][g.Name][name], ";")
			for i := range got {
				got[i] = number(got[i])
			}
			if strings.Join(got, " ") != strings.Join(want[name], " ") {
				t.Errorf("%s: cnpgate.%s is %q, want %q", g.Name, name, got, want[name])
			}
		}
	}
	for _, name := range dissectors {
		if !seen[name] && !slices.Contains(interpreted, name) && name != "kind" {
			t.Errorf("no golden notification has %s", name)
		}
	}
}

// TestColumns: Protocol and Info name every golden notification, and what it asks for. Those of other frames stay as they are.
func TestColumns(t *testing.T) {
	protocols := map[string]string{
		"standard-cnp": "CNP", "fast-cnp": "Fast CNP", "long-haul-cnp": "Long-haul CNP", "long-haul-cnp-icmpv6": "Long-haul CNP", "ppfc": "PPFC",
		"proxy-notification": "Proxy CN",
	}
	infos := map[string]string{
		"standard-cnp-v4":             "standard-cnp DestQP=100",
		"fast-cnp":                    "fast-cnp Destination=2001:db8:b::4 DestQP=200",
		"fast-cnp-preallocated-trace": "fast-cnp Destination=2001:db8:b::4 with IOAM trace DestQP=200",
		"long-haul-cnp-v4":            "long-haul-cnp Rate Reduce 30 percent Level=180 SourceQP=100 DestQP=100",
		"long-haul-cnp-icmpv6":        "long-haul-cnp-icmpv6 Rate Reduce 30 percent Level=180 SourceQP=100",
		"ppfc-v4-pause":               "ppfc Pause 500 us Destination=10.0.0.4 Port=2 DestQP=200",
		"proxy-notification-v4":       "proxy-notification Level=5 Flow=10.0.0.1,52769,10.0.0.4,4791,protocol 17",
	}
	without := lines(plain(t, "-r", filepath.Join(root, "testdata/notifications/golden.pcap"), "-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info", "-e", "_ws.malformed"))
	said := map[string]map[string]map[string]string{"ppfc": golden(t, "extension:PPFC"), "none": golden(t), "long-haul": golden(t)}
	checked := 0
	for i := range notifications.All {
		g := &notifications.All[i]
		protocol, is := protocols[g.Kind]
		if without[i][2] != "" {
			t.Errorf("%s is malformed without the dissector", g.Name)
		}
		frame := said[g.Extension][g.Name]
		got := []string{frame["_ws.col.Protocol"], frame["_ws.col.Info"]}
		switch {
		case !is:
			if got[0] != without[i][0] || got[1] != without[i][1] {
				t.Errorf("%s: columns %q, without the dissector %q", g.Name, got, without[i])
			}
		case got[0] != protocol || !strings.HasPrefix(got[1], g.Kind+" "):
			t.Errorf("%s: columns %q, want %q and %q", g.Name, got, protocol, g.Kind)
		}
		for _, l := range g.Lines() {
			if want := fmt.Sprint("DestQP=", l.Number()); is && l.Name == "bth.dest_qp" && !strings.HasSuffix(got[1], want) {
				t.Errorf("%s: Info is %q, want %s", g.Name, got[1], want)
			}
		}
		if want := infos[g.Name]; want != "" {
			checked++
			if got[1] != want {
				t.Errorf("%s: Info is %q, want %q", g.Name, got[1], want)
			}
		}
	}
	if checked != len(infos) {
		t.Errorf("%d of %d golden notifications found", checked, len(infos))
	}
}

// TestObjects: the objects of the Long-haul CNP's class by what they mean, and only those.
func TestObjects(t *testing.T) {
	for name, want := range map[string]string{
		"long-haul-cnp-v4-objects":     "Aug  7, 2025 17:01:52.500000000 UTC\t000102030405060708\tgwü-1",
		"long-haul-cnp-icmpv6-objects": "Aug  7, 2025 17:01:52.000000000 UTC\t\tA",
	} {
		for i, frames := range []map[string]map[string]string{golden(t), golden(t, "object_class:246")} {
			frame := frames[name]
			if got := frame["object.timestamp"] + "\t" + frame["object.path"] + "\t" + frame["object.device"]; got != []string{want, "\t\t"}[i] {
				t.Errorf("%s: %q, want %q, and none if the class is another one", name, got, want)
			}
		}
	}
}

// TestPreferences: each code point can be another one. A start of tshark has all that don't touch the same notification.
func TestPreferences(t *testing.T) {
	for _, c := range []struct {
		preferences []string
		want        map[string]string // kinds
	}{
		{[]string{"option_type:159", "trace_option_type:159", "icmpv6_type:201", "proxy_port:1021", "extension:Long-haul CNP"}, map[string]string{
			"fast-cnp": "standard-cnp", "long-haul-cnp-icmpv6": "", "proxy-notification-v4": "", "long-haul-cnp-v4": "long-haul-cnp", "ppfc-v4-pause": "long-haul-cnp"}},
		{[]string{"option_type:159", "extension:PPFC"}, map[string]string{
			"fast-cnp-preallocated-trace": "fast-cnp", "long-haul-cnp-icmpv6": "long-haul-cnp-icmpv6", "proxy-notification-v4": "proxy-notification", "long-haul-cnp-v4": "ppfc"}},
		{[]string{"trace_option_type:159", "extension:Neither"}, map[string]string{"fast-cnp": "fast-cnp", "long-haul-cnp-v4": "standard-cnp"}},
	} {
		frames := golden(t, c.preferences...)
		for name, want := range c.want {
			if got := frames[name]["kind"]; got != want {
				t.Errorf("%s with %v: %q, want %q", name, c.preferences, got, want)
			}
		}
	}
}

func frame(t *testing.T, frames ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(path, notifications.Pcap(frames), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// captures are all of the project.
func captures(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, "testdata"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".pcap" {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) < 20 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	return files
}

// TestCaptures: in the frames of all captures, put together as tshark takes a second for each, the dissector finds the notifications that cnpgate decode
// finds. It finds none that is accepted too short, and doesn't change what other dissectors find malformed.
func TestCaptures(t *testing.T) {
	file := filepath.Join(t.TempDir(), "all.pcapng")
	if out, err := exec.Command("mergecap", append([]string{"-a", "-F", "pcapng", "-w", file}, captures(t)...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, refused := decoded(t, file)
	got, malformed := map[string]string{}, ""
	for _, l := range lines(dissected(t, "-r", file, "-T", "fields", "-e", "frame.number", "-e", "cnpgate.kind", "-e", "_ws.malformed",
		"-e", "cnpgate.short", "-e", "_ws.lua.error")) {
		if l[1] != "" {
			got[l[0]] = l[1]
		}
		if l[2] != "" {
			malformed += l[0] + "\n"
		}
		if l[3] != "" && !refused[l[0]] || l[4] != "" {
			t.Errorf("frame %s, which cnpgate decode accepts: short %q, error %q", l[0], l[3], l[4])
		}
	}
	for n, kind := range want {
		if got[n] != kind {
			t.Errorf("frame %s is %q, cnpgate decode says %q", n, got[n], kind)
		}
	}
	if len(got) != len(want) || len(got) < 50 {
		t.Errorf("%d notifications, cnpgate decode finds %d, expected at least 50", len(got), len(want))
	}
	if without := plain(t, "-r", file, "-Y", "_ws.malformed", "-T", "fields", "-e", "frame.number"); malformed != without {
		t.Errorf("malformed are %q, without the dissector %q", malformed, without)
	}
}

// decoded are the kinds that cnpgate decode finds, by frame number, and which of them it refuses.
func decoded(t *testing.T, file string) (kinds map[string]string, refused map[string]bool) {
	t.Helper()
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	c, err := capturefile.NewReader(file, from)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := cnpdec.Receiver{Code: packet.DefaultCodePoints, Extension: packet.LongHaulCNP, ICRC: cnpdec.ICRCEither}
	if _, err := decode.Run(c, &r, decode.JSON, bufio.NewWriter(&out)); err != nil {
		t.Fatal(err)
	}
	kinds, refused = map[string]string{}, map[string]bool{}
	for d := json.NewDecoder(&out); d.More(); {
		var n struct {
			Frame    int
			Kind     string
			Accepted bool
		}
		if err := d.Decode(&n); err != nil {
			t.Fatal(err)
		}
		if n.Kind != "" && n.Kind != "pause" && n.Kind != "pfc" {
			kinds[strconv.Itoa(n.Frame)] = n.Kind
			refused[strconv.Itoa(n.Frame)] = !n.Accepted
		}
	}
	return kinds, refused
}

// TestCaptured: for a frame captured in part, the dissector shows no wrong octets as an ICRC, and reports that octets are missing, also in Info.
func TestCaptured(t *testing.T) {
	header := notifications.Pcap(nil)
	pcap := bytes.Clone(header)
	var names []string
	for _, name := range []string{"standard-cnp-v4", "fast-cnp", "long-haul-cnp-v4", "long-haul-cnp-v4-objects"} {
		whole := notifications.Find(name).Bytes()
		for missing := range 12 {
			one := notifications.Pcap([][]byte{whole[:len(whole)-missing]})[len(header):]
			binary.LittleEndian.PutUint32(one[12:], uint32(len(whole)))
			names = append(names, name)
			pcap = append(pcap, one...)
		}
	}
	cut := notifications.Find("long-haul-cnp-icmpv6").Bytes()[:60]
	pcap = append(pcap, notifications.Pcap([][]byte{cut})[len(header):]...)
	path := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(path, pcap, 0o644); err != nil {
		t.Fatal(err)
	}
	said := lines(dissected(t, "-r", path, "-T", "fields", "-e", "cnpgate.icrc", "-e", "cnpgate.short", "-e", "cnpgate.kind", "-e", "_ws.col.Info"))
	if len(said) != len(names)+1 {
		t.Fatalf("%d frames, want %d", len(said), len(names)+1)
	}
	if got := said[len(names)][3]; got != "long-haul-cnp-icmpv6 Rate Reduce Level=180 [short]" {
		t.Errorf("cut in its fields: Info is %q", got)
	}
	said = said[:len(names)]
	for i, l := range said {
		whole := i%12 == 0
		if (l[0] != "") != whole || (l[1] == "") != whole || l[2] == "" {
			t.Errorf("%s without its last %d octets: ICRC %q, short %q, kind %q", names[i], i%12, l[0], l[1], l[2])
		}
	}
}

// TestHostile: golden notifications truncated after every octet, and with every octet changed, cause no error in the script.
func TestHostile(t *testing.T) {
	var frames [][]byte
	for i := range notifications.All {
		b := notifications.All[i].Bytes()
		b = b[:min(len(b), 250)]
		for at := 12; at < len(b); at++ {
			cut := bytes.Clone(b[:at])
			frames = append(frames, cut)
			for _, v := range []byte{0x00, 0xff, b[at] ^ 1} {
				changed := bytes.Clone(b)
				changed[at] = v
				frames = append(frames, changed)
			}
		}
	}
	file := frame(t, frames...)
	for _, extension := range []string{"Long-haul CNP", "PPFC"} {
		text := dissected(t, "-r", file, "-o", "cnpgate.extension:"+extension, "-O", "cnpgate")
		if at := strings.Index(text, "Lua Error"); at >= 0 {
			t.Errorf("%s: %.500s", extension, text[at:])
		}
		if !strings.Contains(text, "It ends within a field or before the ICRC") {
			t.Errorf("%s: of %d frames none is short", extension, len(frames))
		}
	}
}
