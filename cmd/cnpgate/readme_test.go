package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// typed is what a section of the README has the reader type, with the shell's own line breaks.
func typed(t *testing.T, title string) string {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(readme), "\n## "+title+"\n")
	section, _, ends := strings.Cut(after, "\n## ")
	if !found || !ends {
		t.Fatalf("README.md has no section %s", title)
	}
	var commands strings.Builder
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands.WriteString(command)
		}
	}
	return commands.String()
}

// checkedOut is a folder with what the README's commands use of a checkout, and the program built where they expect it.
func checkedOut(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"bin/cnpgate": binary, "deploy": filepath.Join(root, "deploy"), "testdata": filepath.Join(root, "testdata"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var decoded = regexp.MustCompile(`(?m)^(\d+) frames: (\d+) notifications accepted, 0 refused, 0 other frames$`)

// TestReadmeReplay: the README's commands, typed as they stand there, show notifications, all that the report counts, and nothing is wrong.
func TestReadmeReplay(t *testing.T) {
	commands := typed(t, "Replay")
	if strings.Count(commands, "bin/cnpgate replay ") != 1 || strings.Count(commands, "bin/cnpgate decode ") != 1 {
		t.Fatalf("the commands are\n%s\nwant replay and decode", commands)
	}
	dir := checkedOut(t)
	c := exec.Command("sh", "-e", "-c", commands)
	c.Dir = dir
	got := finished(t, c)
	if got.status != 0 || got.stderr != "" {
		t.Fatalf("exit status %d, stderr:\n%s\nof\n%s", got.status, got.stderr, commands)
	}
	var report struct {
		Counters struct {
			Sent map[string]int `json:"notifications_sent_total"`
		}
	}
	if err := json.Unmarshal([]byte(get(t, dir, "report.json")), &report); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, n := range report.Counters.Sent {
		sent += n
	}
	shown := decoded.FindStringSubmatch(got.stdout)
	if shown == nil || sent < 2 || shown[1] != strconv.Itoa(sent) || shown[2] != shown[1] {
		t.Errorf("the report has %v notifications, decode shows %q; want the same, and several", report.Counters.Sent, shown)
	}
	count := func(action string) int { return strings.Count(got.stdout, "Action             "+action) }
	asked, resumed := count("rate-reduce")+count("pause"), count("resume")
	if asked == 0 || resumed == 0 || asked+resumed != sent {
		t.Errorf("%d requests to slow down and %d to resume, want both, and nothing else", asked, resumed)
	}
	if n := strings.Count(got.stdout, "destination        198.18.0.2"); n != sent {
		t.Errorf("%d of %d notifications go to the sender", n, sent)
	}
	if t.Failed() {
		t.Log(got.stdout)
	}
}

// TestSamples: the samples of output in the documents are what the commands print, and docs/effect.svg is what the simulation of one of them draws.
func TestSamples(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "drawn")
	for _, c := range []struct{ page, indent, begins, command string }{
		{"simulator.md", "", "incast-10ms: ", "sim incast-10ms --response ecn,standard-cnp --wide"},
		{"operations.md", "    ", "PORT ", "check --offline deploy/laptop-af-packet.yaml"},
	} {
		name := filepath.Join("../../docs", c.page)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		args := strings.Fields(c.command)
		if args[0] == "sim" {
			args = append(args, "--svg", drawn)
		}
		printed := cnpgate(t, "../..", args...)
		// A sample is the lines from the first with this beginning to an empty one, or the end of the block.
		sample := func(text, begins string) string {
			_, rest, found := strings.Cut("\n"+text, "\n"+begins)
			if !found {
				t.Fatalf("%s, or what cnpgate %s prints, has no line that begins with %q:\n%s%s", c.page, c.command, begins, printed.stdout, printed.stderr)
			}
			rest, _, _ = strings.Cut(rest+"\n", "\n\n")
			rest, _, _ = strings.Cut(rest+"\n", "\n```")
			return begins + strings.TrimRight(rest, "\n")
		}
		have, want := sample(string(text), c.indent+c.begins), c.indent+strings.ReplaceAll(sample(printed.stdout, c.begins), "\n", "\n"+c.indent)
		if *update {
			err = os.WriteFile(name, []byte(strings.Replace(string(text), have, want, 1)), 0o600)
		}
		if err != nil || have != want && !*update {
			t.Errorf("%s: the sample differs from what cnpgate %s prints (%v; scripts/figures writes it)\n%s", c.page, c.command, err, want)
		}
	}
	const picture = "../../docs/effect.svg"
	have, err := os.ReadFile(picture)
	want := get(t, filepath.Dir(drawn), "drawn-standard-cnp.svg")
	if err == nil && *update {
		err = os.WriteFile(picture, []byte(want), 0o600)
	}
	if err != nil || string(have) != want && !*update {
		t.Errorf("%s is not what cnpgate sim incast-10ms --svg draws of standard-cnp (%v; scripts/figures writes it)", picture, err)
	}
}
