//go:build live && !nodpdk && long

package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnpgate/cnpgate/internal/testkit/ontime"
)

// systemctl stands in for systemd's: it does what the unit says for ExecStartPre and ExecStart, the latter with the unit's capabilities and limit of locked memory only. There is
// no group cnpgate.
const systemctl = `#!/bin/bash
set -e
unit=/etc/systemd/system/$3.service
sed -n 's/^ExecStartPre=[-+]*//p' "$unit" | while read -r command; do $command || echo "$command fails"; done
ulimit -l "$(sed -n 's/^LimitMEMLOCK=infinity/unlimited/p' "$unit")"
capabilities=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr A-Z a-z | sed 's/cap_/+/g; s/ /,/g')
(/usr/bin/setpriv --bounding-set "-all,$capabilities" --no-new-privs $(sed -n 's/^ExecStart=//p' "$unit") 2>/tmp/log; echo $? >/tmp/status) &
`

// TestBareMetal carries out the section Bare metal of deploy/README.md in a guest that has two NICs where bare-metal.yaml wants them: every
// command of it, but that the gateway was compiled outside. Then the gateway forwards.
func TestBareMetal(t *testing.T) {
	if ontime.Again(t) {
		return
	}
	binary := buildGateway(t)
	readme, err := os.ReadFile("../../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Bare metal\n")
	section, _, _ = strings.Cut(section, "\n## ")
	files := gatewayFiles(t, binary)
	files = append(files, File{Path: "/src/bin/cnpgate", From: binary, Mode: 0o755}, File{Path: "/usr/bin/systemctl", Text: systemctl, Mode: 0o755})
	for _, pattern := range []string{"scripts/host-setup", "scripts/setup", "scripts/lib.sh", "deploy/*.yaml", "deploy/cnpgate.service"} {
		found, _ := filepath.Glob("../../../" + pattern)
		for _, f := range found {
			files = append(files, File{Path: "/src/" + strings.TrimPrefix(f, "../../../"), From: f, Mode: 0o755})
		}
	}
	programs, err := Programs("/bin/bash", "/usr/bin/install", "/usr/bin/setpriv")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "cnpgate-guest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g, err := Boot(Config{
		Folder: dir, CPUs: 4, MemoryMiB: 6144, NICs: []string{"vmxnet3", "vmxnet3"}, Bus: 0x3b,
		Files: append(append(files, programs...), moduleTree(t, "vfio-pci", "vfio_iommu_type1")...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	run(t, g, "mkdir -p /etc/systemd/system") // as on every system with systemd
	for line := range strings.Lines(section) {
		command, indented := strings.CutPrefix(strings.TrimRight(line, "\n"), "       ")
		switch {
		case !indented || command == "":
		case command == "scripts/setup && scripts/build":
		default:
			t.Log(command)
			t.Log(run(t, g, "cd /src && bash -ec '"+command+"' 2>&1"))
		}
	}
	w := &gateway{g, t}
	w.until("[ -e /tmp/status ] || [ $(grep -c 'link is up' /tmp/log) = 2 ]")
	if out := run(t, g, "cat /tmp/status 2>/dev/null || true"); out != "" {
		t.Fatalf("the gateway ended with status %s:\n%s", out, tail(g))
	}
	frames := mixed(4200, 2)
	w.passes("bare metal", frames)
	run(t, g, "cp /var/lib/cnpgate/report.json /tmp/r.json 2>/dev/null || ln -s /var/lib/cnpgate/report.json /tmp/r.json")
	if c := w.stop(); c.Counters.Forwarded != uint64(2*len(frames)) {
		t.Errorf("%+v", c)
	}
}

// moduleTree are modules of the kernel, with what they need, where modprobe looks for them.
func moduleTree(t *testing.T, names ...string) []File {
	t.Helper()
	k, err := findKernel()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := resolve(k, names)
	if err != nil {
		t.Fatal(err)
	}
	to := "/lib/modules/" + filepath.Base(k.modules) + "/"
	files := []File{{Path: to + "modules.dep", From: filepath.Join(k.modules, "modules.dep"), Mode: 0o644}}
	for _, m := range modules {
		files = append(files, File{Path: to + m, From: filepath.Join(k.modules, m), Mode: 0o644})
	}
	return files
}
