package replay_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/control/replay"
	"github.com/cnpgate/cnpgate/endpoint"
	"github.com/cnpgate/cnpgate/health"
	"github.com/cnpgate/cnpgate/internal/packet"
)

// TestSeveralFiles: a capture that is in several files is judged as if it were in one, in whatever order they are named: those of a ring buffer, one of each interface
// or mirror port, however much is in each, and some that are empty, sorted only in part, or compressed.
func TestSeveralFiles(t *testing.T) {
	job := lossy{op: endpoint.Write, bytes: 16384, messages: 800, timeout: 40 * msec, delay: [2]int64{60 * usec, 60 * usec}, rule: loses(300, 0, true)}
	_, path := job.run(t, 1)
	whole := healthOf(t, path)
	all := frames(t, readFile(t, path))
	direction := func(i int) int { return int(all[i].octets[packet.EthernetLen+13] >> 3 & 1) }
	for name, file := range map[string]func(i int) int{
		"a ring buffer":            func(i int) int { return 3 - i*4/len(all) },
		"one of each direction":    direction,
		"packets by turns":         func(i int) int { return i % 3 },
		"one of a few, and a ring": func(i int) int { return min(i%100, 1) * (1 + i*3/len(all)) },
	} {
		t.Run(name, func(t *testing.T) {
			parts := make([][]record, 5) // the last one is empty
			for i, f := range all {
				n := file(i)
				parts[n] = append(parts[n], record{uint32(f.at / 1e9), uint32(f.at % 1e9), uint32(len(f.octets)), uint32(f.length), f.octets})
			}
			for i := range parts[0][:len(parts[0])-8] { // two queues
				if i%50 == 0 {
					parts[0][i], parts[0][i+7] = parts[0][i+7], parts[0][i]
				}
			}
			dir := t.TempDir()
			var names []string
			for i, p := range parts {
				names = append(names, filepath.Join(dir, fmt.Sprintf("%d.pcap", i)))
				if err := os.WriteFile(names[i], classic(binary.LittleEndian, nano, 1, p...), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			back := slices.Clone(names)
			slices.Reverse(back)
			for _, names := range [][]string{names, back, {dir}} {
				r, frames := healthOfAll(t, names...)
				if got, want := verdictsOf(r), verdictsOf(whole); got != want || frames != len(all) {
					t.Errorf("%d of %d frames; it says %s\nwant %s", frames, len(all), got, want)
				}
			}
		})
	}
}

// verdictsOf is what a report says, and what it has counted.
func verdictsOf(r *health.Report) string {
	var b strings.Builder
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s: %s: %s\n", v.Name, v.Subject, v.Evidence)
	}
	summary, err := json.Marshal(r.Summary)
	return fmt.Sprint(b.String(), string(summary), err)
}

// TestOneOfSeveralFiles: which of several files can't be read is said, and what is unusual about one.
func TestOneOfSeveralFiles(t *testing.T) {
	good := "testdata/cases/fcs.pcap.zst"
	if _, err := replay.OpenAll([]string{good, save(t, []byte("text"))}, nil); err == nil {
		t.Error("a text is read as a capture")
	}
	c, err := replay.OpenAll([]string{good, "testdata/cases/cut_tail.pcap.zst"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "cut_tail") {
		t.Errorf("warnings %q", c.Warnings)
	}
}

// TestDirectoryWithNotes: what lies beside the captures in a directory is left out, which is said.
func TestDirectoryWithNotes(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile("testdata/cases/fcs.pcap.zst")
	for name, content := range map[string][]byte{"b.pcap.zst": b, "a.txt": []byte("what happened"), "c.pcap": nil} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := replay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(c.Warnings) != 1 || !strings.HasPrefix(c.Warnings[0], "2 of 3 files are left out, the first one: capture "+dir+"/a.txt: not a pcap") || c.Frames == 0 {
		t.Errorf("%d frames, warnings %q", c.Frames, c.Warnings)
	}
}
